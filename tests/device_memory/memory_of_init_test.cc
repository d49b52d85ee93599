// Memory of its GPU that a communicator takes before its first call.
#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kOfProcess = GpuContext::kPlainMemory;  // one for all communicators of a process, where there are several
constexpr std::size_t kLeast = std::size_t{1} << 20;          // less: it was not counted

class DeviceMemoryOfInit : public DeviceProcesses {
 protected:
  // Memory of the GPU of the rank that this process has.
  static std::size_t in_use(const DeviceRank& mine) {
    std::size_t free = 0, total = 0;
    EXPECT_TRUE(ok(mine.driver.mem_get_info(&free, &total)));
    return total - free;
  }
  static void expect_little(const DeviceRank& mine, bool is_alone) {
    const std::size_t bytes = in_use(mine);
    EXPECT_LE(bytes, kMost + (is_alone ? 0 : kOfProcess)) << "rank " << mine.rank;
    EXPECT_GE(bytes, kLeast) << "rank " << mine.rank;
  }
};

TEST_F(DeviceMemoryOfInit, IsAtMost4MiBBetweenThreads) {
  SETO_NEEDS_STAND_IN();  // a real driver counts contexts, too
  constexpr int kRanks = 3;
  start_gpus(kRanks);
  on_threads(1, [](DeviceRank& mine) { EXPECT_EQ(in_use(mine), 0U); });
  on_ranks(kRanks, [](DeviceRank& mine) { expect_little(mine, true); });
}

TEST_F(DeviceMemoryOfInit, IsAtMost4MiBBetweenProcesses) {
  SETO_NEEDS_STAND_IN();
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < 2; ++rank)
    children.emplace_back([&, rank] { return run_rank(rank, 2, 2, [](DeviceRank& mine) { expect_little(mine, false); }); });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto::testing
