#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(int32, int32)
