#include "src/base/core_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace seto {

bool pass_barrier_on_every_core() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0) return true;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) return true;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return false;
}

bool every_core_can_be_reached() {
  static const bool can = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return can;
}

}  // namespace seto
