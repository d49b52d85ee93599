#include "src/engine/kernels/entries.h"

SETO_CODED_KERNEL(bfloat16, bfloat16)
