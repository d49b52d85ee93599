#pragma once

#include <string>

#include "src/base/result.h"
#include "transports/rdma/verbs/libibverbs_functions.h"

// Memory that a device uses, and forks of the process.
namespace seto::rdma {

// The release of the running kernel, such as "6.1.0-56-amd64".
[[nodiscard]] std::string kernel_release();

// From this release on a child gets copies of pinned pages, and the parent keeps those that the device uses. Before it either of
// them may get the copy. Keeping memory of users from children (MADV_DONTFORK) would end a child that reads it.
inline constexpr int kForkKernel[2] = {5, 12};
[[nodiscard]] bool copies_on_fork(const std::string& kernel);

// On a kernel that does not do so, libibverbs keeps the memory of queues from children, which the driver allocates: else the
// parent would write its next request to a copy that the device never reads. To be called before a device is opened. A failure:
// another library of this process was earlier, and a fork may stop the devices.
Status keep_queues_from_children(const LibibverbsFunctions& functions, const std::string& kernel);

}  // namespace seto::rdma
