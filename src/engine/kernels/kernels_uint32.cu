#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(uint32, uint32)
