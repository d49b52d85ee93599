#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "transports/gpu_buffer.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

inline constexpr const char* kKernelModules = "/sys/module";

// The best way that a trial proves, between this device and the GPU of the buffer. Nothing is left registered.
[[nodiscard]] GpuReach find_gpu_reach(Verbs& verbs, const std::string& device, GpuBuffer& buffer, Deadline until,
                                      const std::string& modules = kKernelModules);

// The same for each device of this machine that the text of SETO_RDMA permits. Empty: there is none, or no library for them.
[[nodiscard]] std::vector<GpuReach> find_gpu_reach(std::string_view setting, GpuBuffer& buffer, Deadline until);

}  // namespace seto::rdma
