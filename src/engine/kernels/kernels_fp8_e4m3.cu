#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(fp8_e4m3, float8e4m3)
