#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(float, float32)
