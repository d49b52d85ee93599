#include "transports/rdma/verbs/fork_safety.h"

#include <sys/utsname.h>

#include <cstdio>
#include <cstring>

namespace seto::rdma {

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? names.release : "";
}

bool copies_on_fork(const std::string& kernel) {
  int major = 0, minor = 0;
  if (std::sscanf(kernel.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major != kForkKernel[0] ? major > kForkKernel[0] : minor >= kForkKernel[1];
}

// Not on later kernels: releases of libibverbs that do not know them would take named memory of users from children, too.
Status keep_queues_from_children(const LibibverbsFunctions& functions, const std::string& kernel) {
  if (copies_on_fork(kernel)) return {};
  const int error = functions.ibv_fork_init();
  if (error == 0) return {};
  return failure(
      Code::unavailable,
      "ibv_fork_init failed on kernel %s (%s): after a fork of this process, by system() or subprocess too, RDMA may stand "
      "still. Set RDMAV_FORK_SAFE=1 for all ranks, use Linux %d.%d or later, or fork before the first communicator",
      kernel.c_str(), std::strerror(error), kForkKernel[0], kForkKernel[1]);
}

}  // namespace seto::rdma
