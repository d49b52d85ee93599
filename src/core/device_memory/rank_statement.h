#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/choice/gpu_paths.h"
#include "src/device/cuda/driver_memory.h"
#include "src/topology/tiers.h"

namespace seto {

// A rank says of NVLink multicast whether SETO_NVLS asks for it, and whether its driver and its GPU have it.
enum class MulticastOffer : std::uint32_t { not_asked, can, driver_lacks, gpu_lacks };

// The statement of a rank of a device communicator to the others, when it has prepared its GPU.
struct RankStatement {
  std::uint64_t layout = 0;     // of this struct and of workspaces: builds that differ refuse each other
  std::uint64_t process = 0;    // a number that no other process has
  std::uint64_t token = 0;      // at random; that of rank 0 names the communicator
  std::uint64_t workspace = 0;  // its address in that process; as the handle, only in the second exchange of statements
  std::uint64_t context = 0;    // the handle in that process
  cuda::IpcMemoryHandle handle{};
  cuda::DeviceUuid gpu{};
  std::int32_t device = 0;
  std::uint32_t resident_blocks = 0;  // of the library's kernels, that its GPU holds at once
  std::uint32_t handle_code = 0;      // the DriverCode with which the driver gave the handle, or did not: 0, it did
  std::uint32_t multicast = 0;        // MulticastOffer
  std::uint32_t gives_files = 0;      // it can share memory by file descriptor, and listens for that of others
  GpuPaths paths{};
};

// The blocks that a kernel of this communicator may have so that those of all ranks run at once, at most so many.
Result<std::uint32_t> blocks_of(const std::vector<RankStatement>& statements, std::uint32_t most);
// The same for kernels of collectives and messages, which have fewer where messages cross hosts.
Result<std::uint32_t> blocks_of(const std::vector<RankStatement>& statements, const Tiers& tiers);

[[nodiscard]] bool is_one_host(const Tiers& tiers);
// By rank, whether it is on the host of this one.
[[nodiscard]] std::vector<bool> nearby_ranks(const Tiers& tiers, Rank rank, int ranks);

// Another rank of the process of this one uses its GPU.
[[nodiscard]] bool shares_gpu(const std::vector<RankStatement>& statements, Rank rank);

[[nodiscard]] bool is_one_process(const std::vector<RankStatement>& statements);

// A number of this process that no other process has.
[[nodiscard]] std::uint64_t number_of_process();
[[nodiscard]] std::uint64_t random_number();

// Tells all ranks how this rank's preparation went. If one failed, it fails on all ranks with one text, which names that rank.
Result<std::vector<RankStatement>> exchange(Bootstrap& bootstrap, const Result<RankStatement>& mine, Deadline until);
// The same for what a rank has found about the others: a byte for each of them.
Result<std::vector<std::string>> exchange_findings(Bootstrap& bootstrap, const Result<std::string>& mine, Deadline until);
// After a step that may fail without harm. Empty: no rank has failed. Else why this or another one has.
Result<std::string> obstacle_of_any(const Status& mine, std::size_t ranks, Bootstrap& bootstrap, Deadline until);
// The same for a step without a statement.
Status agree(Bootstrap& bootstrap, const Status& mine, Deadline until);

}  // namespace seto
