// Processes of one host whose drivers give no file descriptors for memory, and that may not open handles of IPC either, as in
// containers that do not share the namespaces of IPC and PID: the host relays their messages.
#include <algorithm>

#include "src/base/log.h"
#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

constexpr const char* kRelayed = "processes of this host do not share memory of GPUs";

// How many lines of the log have the part.
std::size_t lines_with(const LogCapture& log, const std::string& part) {
  const std::vector<std::string> lines = log.lines();
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

class DeviceRefusedSharing : public DeviceProcesses {
 protected:
  // Rank r runs with the errors errors[r], and logs reasons[r] once; empty: it logs no reason.
  void run(const std::vector<std::string>& errors, const std::vector<std::string>& reasons) {
    SETO_NEEDS_STAND_IN();
    const int ranks = static_cast<int>(errors.size());
    std::vector<ChildProcess> children;
    for (int rank = 0; rank < ranks; ++rank)
      children.emplace_back([&, rank] {
        const LogCapture log;
        const bool passed =
            run_rank(rank, ranks, 2, calls(ranks), device_config(),
                     {{"SOFTWARE_GPU_ERRORS", errors[static_cast<std::size_t>(rank)]}, {"SOFTWARE_GPU_MEMORY_FILES", "0"}});
        const std::string& reason = reasons[static_cast<std::size_t>(rank)];
        EXPECT_EQ(lines_with(log, kRelayed), reason.empty() ? 0U : 1U) << "rank " << rank;
        EXPECT_TRUE(reason.empty() || log.contains(reason)) << "rank " << rank;
        return passed && !HasFailure();
      });
    for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
  }

 private:
  // Sums, and messages from each rank to the next.
  static Body calls(int ranks) {
    return [ranks](DeviceRank& mine) {
      const auto total = static_cast<float>(ranks * (ranks + 1) / 2);
      for (const std::size_t count : {std::size_t{3}, std::size_t{9'000}}) {
        const std::vector<float> values(count, static_cast<float>(mine.rank + 1));
        auto* const memory = mine.upload(values);
        auto* const received = mine.upload(std::vector<float>(count, -1));
        ASSERT_TRUE(succeeded(setoGroupStart()));
        EXPECT_TRUE(succeeded(send(mine, memory, count, (mine.rank + 1) % ranks)));
        EXPECT_TRUE(succeeded(receive(mine, received, count, (mine.rank + ranks - 1) % ranks)));
        ASSERT_TRUE(succeeded(setoGroupEnd()));
        for (int round = 0; round < 2; ++round) ASSERT_TRUE(succeeded(sum(mine, memory, count)));
        EXPECT_EQ(mine.read(memory, count), std::vector<float>(count, total * static_cast<float>(ranks)));
        const int before = (mine.rank + ranks - 1) % ranks;
        EXPECT_EQ(mine.read(received, count), std::vector<float>(count, static_cast<float>(before + 1)));
      }
      EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
    };
  }
};

// Ranks 1 and 2 reach each other.
TEST_F(DeviceRefusedSharing, OfARankThatGetsNoHandle) {
  const std::string reason = "memory of rank 0: cuIpcGetMemHandle failed with CUDA_ERROR_NOT_PERMITTED (800";
  run({"cuIpcGetMemHandle:800:1-", "", ""}, {reason, reason, reason});
}

TEST_F(DeviceRefusedSharing, OfARankThatMayOpenNone) {
  run({"", "cuIpcOpenMemHandle:304:1-"},
      {"", "memory of rank 0: cuIpcOpenMemHandle failed with CUDA_ERROR_OPERATING_SYSTEM (304"});
}

TEST_F(DeviceRefusedSharing, AGpuWithoutMemoryIsStillAFailureOfAllRanks) {
  SETO_NEEDS_STAND_IN();
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < 2; ++rank)
    children.emplace_back([&, rank] {
      start_gpus(2, {{"SOFTWARE_GPU_ERRORS", rank == 1 ? "cuIpcOpenMemHandle:2:1-" : ""}, {"SOFTWARE_GPU_MEMORY_FILES", "0"}});
      if (rank == 0) {
        EXPECT_TRUE(succeeded(setoGetUniqueId(&shared_->id)));
        shared_->has_id.store(1);
      }
      while (shared_->has_id.load() == 0) std::this_thread::yield();
      std::thread([&] {
        DeviceRank mine(driver(), rank, rank);
        refuse_init(mine, 2, shared_->id, "rank 1: the memory of rank 0 (GPU 0");
      }).join();
      TearDown();
      return !HasFailure();
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto::testing
