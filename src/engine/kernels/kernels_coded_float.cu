#include "src/engine/kernels/entries.h"

SETO_CODED_KERNEL(float, float32)
