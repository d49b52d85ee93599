#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(fp8_e5m2, float8e5m2)
