#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(int64, int64)
