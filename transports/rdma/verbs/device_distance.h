#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace seto::rdma {

// How far a device is from memory, as the kernel tells it of their NUMA nodes: kNear on the same node, or where it is unknown.
inline constexpr std::uint8_t kNear = 10;

// From the memory of a thread that runs on these processors. One that may run on processors of several nodes has memory
// anywhere, and every device is near. `sys`: where the kernel shows devices.
[[nodiscard]] std::uint8_t distance_of(const std::string& device, const std::vector<int>& processors,
                                       const std::string& sys = "/sys");
// Those on which the calling thread may run.
[[nodiscard]] std::vector<int> own_processors();

}  // namespace seto::rdma
