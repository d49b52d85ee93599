#include "src/engine/kernels/entries.h"

SETO_CODED_KERNEL(double, float64)
