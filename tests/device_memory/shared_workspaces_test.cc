// Workspaces that processes share by file descriptor (decision 56): peers that are killed or leave while kernels of others write
// to them; drivers that give no descriptors, or refuse a call.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "src/base/log.h"
#include "src/core/device_memory/lending/memory_importer.h"
#include "src/core/device_memory/memory/shared_memory.h"
#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

constexpr const char* kByIpc = "processes share memory of GPUs by legacy IPC";
constexpr const char* kRelayed = "processes of this host do not share memory of GPUs";
constexpr int kKilled = 3;  // in shared_->waiting: the other process has ended

std::size_t lines_with(const LogCapture& log, const std::string& part) {
  const std::vector<std::string> lines = log.lines();
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

// Files of memory of the stand-in that this process has open: each handle and each descriptor is one.
std::size_t memory_files() {
  std::size_t count = 0;
  std::error_code gone;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
    if (std::filesystem::read_symlink(one.path(), gone).string().find("software_gpu") != std::string::npos) ++count;
  return count;
}

class DeviceSharedWorkspaces : public DeviceProcesses {
 protected:
  void SetUp() override {
    SETO_NEEDS_STAND_IN();
    DeviceProcesses::SetUp();
  }
  void await(int waiting) const {
    const Deadline until = Deadline::after_ms(kLoadingMs);
    while (shared_->waiting.load() < waiting && !until.passed()) std::this_thread::yield();
    EXPECT_GE(shared_->waiting.load(), waiting);
  }
  static void expect_sum(DeviceRank& mine, float* memory) {
    mine.write(memory, std::vector<float>(kCount, 1));
    EXPECT_TRUE(succeeded(sum(mine, memory)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 2));
  }
  // When rank 1 has gone, kernels of this rank begin, write to its workspace and wait for it in vain.
  void replay_without_rank_1(DeviceRank& mine, const std::string& reason) const {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    expect_sum(mine, memory);
    {
      const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(sum_in_vain(mine, memory))); });
      shared_->waiting.fetch_add(1);
      await(kKilled);
      for (int round = 0; round < 3; ++round) graph.launch();
      mine.synchronize();
      expect_failed(mine, reason);
    }
    expect_usable(mine, memory);
    abort(mine);
  }
};

TEST_F(DeviceSharedWorkspaces, KernelsWriteToAProcessThatWasKilled) {
  ChildProcess victim([&] {
    return run_rank(1, 2, 2, [&](DeviceRank& mine) {
      expect_sum(mine, mine.upload(std::vector<float>(kCount, 1)));
      shared_->waiting.fetch_add(1);
      for (;;) pause();
    });
  });
  ChildProcess survivor([&] { return run_rank(0, 2, 2, [&](DeviceRank& mine) { replay_without_rank_1(mine, "rank 1"); }); });
  await(2);
  victim.kill_now();
  shared_->waiting.store(kKilled);
  EXPECT_TRUE(survivor.wait());
}

// Its memory is given back at once, although the other rank still maps it.
TEST_F(DeviceSharedWorkspaces, KernelsWriteToARankThatHasLeft) {
  ChildProcess first([&] {
    return run_rank(1, 2, 2, [&](DeviceRank& mine) {
      expect_sum(mine, mine.upload(std::vector<float>(kCount, 1)));
      await(1);
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      mine.comm = nullptr;
      EXPECT_TRUE(all_is_freed());
    });
  });
  ChildProcess second([&] { return run_rank(0, 2, 2, [&](DeviceRank& mine) { replay_without_rank_1(mine, "rank 1"); }); });
  EXPECT_TRUE(first.wait());
  shared_->waiting.store(kKilled);
  EXPECT_TRUE(second.wait());
}

// Both ranks use IPC, and the one that must says why.
TEST_F(DeviceSharedWorkspaces, OneDriverWithoutDescriptorsIsEnoughForIpc) {
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < 2; ++rank)
    children.emplace_back([&, rank] {
      const LogCapture log;
      const bool passed =
          run_rank(rank, 2, 2, [](DeviceRank& mine) { expect_sum(mine, mine.upload(std::vector<float>(kCount, 1))); },
                   device_config(), {{"SOFTWARE_GPU_MEMORY_FILES", rank == 1 ? "0" : "1"}});
      EXPECT_EQ(lines_with(log, kByIpc), rank == 1 ? 1U : 0U);
      EXPECT_EQ(lines_with(log, kRelayed), 0U);
      return passed && !HasFailure();
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

// ---- each call of the driver fails on rank 1, in one communicator after another of the same two processes

enum class Outcome : std::uint8_t { ipc, relayed, failed };

struct Refusal {
  const char* error;
  Outcome outcome;
  const char* text;  // in the log of rank 1, or of the failure on both
};

constexpr Refusal kRefusals[] = {
    {"cuMemGetAllocationGranularity:801", Outcome::ipc, "cuMemGetAllocationGranularity"},
    {"cuMemCreate:801", Outcome::ipc, "by file descriptor"},
    {"cuMemCreate:2", Outcome::ipc, "cuMemCreate failed with CUDA_ERROR_OUT_OF_MEMORY"},
    {"cuMemExportToShareableHandle:304", Outcome::ipc, "cuMemExportToShareableHandle"},
    {"cuMemImportFromShareableHandle:304", Outcome::ipc, "cuMemImportFromShareableHandle"},
    {"cuMemAddressReserve:2", Outcome::failed,
     "rank 1: no 4096 KiB of memory on GPU 1 for the communicator: cuMemAddressReserve"},
    {"cuMemMap:2", Outcome::failed, "rank 1: no 4096 KiB of memory on GPU 1 for the communicator: cuMemMap"},
    {"cuMemSetAccess:2", Outcome::failed, "rank 1: no 4096 KiB of memory on GPU 1 for the communicator: cuMemSetAccess"},
    {"cuMemAddressReserve:2:2", Outcome::failed, "rank 1: the memory of rank 0 (GPU 0"},
    {"cuMemMap:801:2", Outcome::relayed, "memory of rank 0: cuMemMap"},
    {"cuMemSetAccess:800:2", Outcome::relayed, "memory of rank 0: cuMemSetAccess"},
};
constexpr std::size_t kAttempts = std::size(kRefusals);

// Memory of the test and its processes.
struct Names {
  setoUniqueId ids[kAttempts];
  std::atomic<std::size_t> made;  // so many of them
};

class DeviceRefusedWorkspaces : public DeviceSharedWorkspaces {
 protected:
  void SetUp() override {
    DeviceSharedWorkspaces::SetUp();
    void* const memory = mmap(nullptr, sizeof(Names), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    names_ = new (memory) Names{};
  }
  // The first communicator of the process stays, so that kernels stay loaded.
  void attempt(DeviceRank& mine, std::size_t number, float* memory) const {
    const Refusal& refusal = kRefusals[number];
    SCOPED_TRACE(std::string(refusal.error) + ", rank " + std::to_string(mine.rank));
    if (mine.rank == 0) {
      EXPECT_TRUE(succeeded(setoGetUniqueId(&names_->ids[number])));
      names_->made.store(number + 1);
    }
    const Deadline until = Deadline::after_ms(kLoadingMs);
    while (names_->made.load() <= number && !until.passed()) std::this_thread::yield();
    const LogCapture log;
    if (mine.rank == 1) inject(refusal.error);
    if (refusal.outcome == Outcome::failed) {
      refuse_init(mine, 2, names_->ids[number], refusal.text);
      inject("");
      return;
    }
    setoConfig_t config = device_config();
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, 2, names_->ids[number], mine.rank, &config)));
    inject("");
    const bool is_ipc = refusal.outcome == Outcome::ipc;
    if (mine.rank == 1) {
      EXPECT_TRUE(log.contains(refusal.text));
    }
    EXPECT_EQ(lines_with(log, kByIpc), is_ipc && mine.rank == 1 ? 1U : 0U);
    EXPECT_EQ(lines_with(log, kRelayed), !is_ipc && mine.rank == 1 ? 1U : 0U);
    expect_sum(mine, memory);
    EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    mine.comm = nullptr;
  }
  static bool all_is_closed() {
    const Deadline until = Deadline::after_ms(kPatienceMs);
    while (MemoryImporter::of_process().mapped() > 0 && !until.passed()) std::this_thread::yield();
    return MemoryImporter::of_process().mapped() == 0;
  }

  Names* names_ = nullptr;
};

TEST_F(DeviceRefusedWorkspaces, EachCallOfTheDriverLeavesNothing) {
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < 2; ++rank)
    children.emplace_back([&, rank] {
      return run_rank(rank, 2, 2, [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kCount, 1));
        setoComm_t keeper = nullptr;
        setoConfig_t config = device_config();
        ASSERT_TRUE(succeeded(setoCommInitRankConfig(&keeper, 1, {}, 0, &config)));
        expect_sum(mine, memory);
        EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
        EXPECT_TRUE(all_is_freed() && all_is_closed());
        const std::size_t before = memory_files();
        for (std::size_t number = 0; number < kAttempts; ++number) {
          attempt(mine, number, memory);
          EXPECT_TRUE(all_is_freed() && all_is_closed());
          EXPECT_EQ(memory_files(), before) << kRefusals[number].error;
        }
        EXPECT_TRUE(succeeded(setoCommDestroy(keeper)));
      });
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

// Programs that this process executes do not keep the memory.
TEST_F(DeviceSharedWorkspaces, DescriptorsAreClosedOnExec) {
  start_gpus(1);
  const Result<std::shared_ptr<GpuContext>> gpu = GpuContext::of_device(0);
  ASSERT_TRUE(ok(gpu.status()));
  const ContextScope scope(*gpu.value());
  const Result<SharedMemory> memory = SharedMemory::create(gpu.value(), 1);
  ASSERT_TRUE(ok(memory.status()));
  const Result<PrivateFd> file = memory.value().descriptor();
  ASSERT_TRUE(ok(file.status()));
  EXPECT_NE(fcntl(file.value().get(), F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace seto::testing
