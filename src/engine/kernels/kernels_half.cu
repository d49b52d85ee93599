#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(half, float16)
