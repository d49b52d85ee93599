#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(bfloat16, bfloat16)
