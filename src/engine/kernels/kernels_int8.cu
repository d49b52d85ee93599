#include "src/engine/kernels/entries.h"

SETO_PLAIN_KERNEL(int8, int8)
