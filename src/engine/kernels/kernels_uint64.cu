#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(uint64, uint64)
