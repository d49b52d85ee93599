#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(uint8, uint8)
