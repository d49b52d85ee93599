#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(double, float64)
