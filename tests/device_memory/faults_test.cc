// Ranks that are late, lost, different or aborted, and GPUs that cannot be used.
#include <sys/mman.h>

#include <atomic>
#include <csignal>

#include "tests/device_memory/device_ranks.h"
#include "tests/support/child_process.h"

namespace seto::testing {
namespace {

constexpr std::size_t kCount = 1000;

class DeviceFaults : public DeviceMemory {
 protected:
  static setoResult_t sum(DeviceRank& mine, float* memory, std::size_t count = kCount) {
    return setoAllReduce(memory, memory, count, setoFloat32, setoSum, mine.comm, mine.stream());
  }
  static void expect_failed(DeviceRank& mine, const std::string& part) {
    const Deadline until = Deadline::after_ms(20'000);
    setoResult_t state = setoSuccess;
    while (state == setoSuccess && !until.passed()) EXPECT_TRUE(succeeded(setoCommGetAsyncError(mine.comm, &state)));
    EXPECT_NE(state, setoSuccess) << "rank " << mine.rank;
    EXPECT_NE(std::string(setoGetLastError(mine.comm)).find(part), std::string::npos)
        << "rank " << mine.rank << ": " << setoGetLastError(mine.comm);
  }
  // The stream and the context work after the communicator has failed.
  static void expect_usable(DeviceRank& mine, float* memory) {
    mine.write(memory, std::vector<float>(kCount, 7));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 7));
  }
  static void refuse_init(DeviceRank& mine, int ranks, setoUniqueId id, const std::string& part,
                          setoConfig_t config = device_config()) {
    const setoResult_t result = setoCommInitRankConfig(&mine.comm, ranks, id, mine.rank, &config);
    EXPECT_NE(result, setoSuccess);
    EXPECT_NE(std::string(setoGetLastError(nullptr)).find(part), std::string::npos) << setoGetLastError(nullptr);
    EXPECT_EQ(mine.comm, nullptr);
  }
};

TEST_F(DeviceFaults, ARankThatNeverCallsIsNamedAtTheDeadline) {
  start_gpus(2);
  on_ranks(
      2,
      [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kCount, 1));
        if (mine.rank == 0) {
          ASSERT_TRUE(succeeded(sum(mine, memory)));
          mine.synchronize();
          expect_failed(mine,
                        "did not end within 300 ms (SETO_OPERATION_TIMEOUT_MS): rank 1 never came; rank 0 waits for rank 1 in ");
          expect_usable(mine, memory);
        } else {
          expect_failed(mine, "rank 1 never came");
        }
        (void)setoCommDestroy(mine.comm);
        mine.comm = nullptr;
      },
      device_config(300));
}

TEST_F(DeviceFaults, LaunchesThatBlockHaveADeadlineToo) {
  start_gpus(2, {{"CUDA_LAUNCH_BLOCKING", "1"}});
  on_ranks(
      2,
      [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kCount, 1));
        ASSERT_TRUE(succeeded(sum(mine, memory)));
        EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 2));
        if (mine.rank == 0) (void)sum(mine, memory);
        expect_failed(mine, "rank 1 never came");
        (void)setoCommAbort(mine.comm);
        mine.comm = nullptr;
      },
      device_config(500));
}

TEST_F(DeviceFaults, AbortFromAnotherThreadEndsAKernel) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(sum(mine, memory)));
      std::thread([&] { EXPECT_TRUE(succeeded(setoCommAbort(mine.comm))); }).join();
      mine.synchronize();
      expect_usable(mine, memory);
    } else {
      expect_failed(mine, "setoCommAbort was called on rank 0");
      (void)setoCommDestroy(mine.comm);
    }
    mine.comm = nullptr;
  });
}

TEST_F(DeviceFaults, CallsThatDifferAreNamed) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(succeeded(
        setoAllReduce(memory, memory, kCount, setoFloat32, mine.rank == 0 ? setoSum : setoMax, mine.comm, mine.stream())));
    expect_failed(mine, "operation 1");
    expect_failed(mine, "all_reduce of 1000 float, max");
    (void)setoCommAbort(mine.comm);
    mine.comm = nullptr;
  });
}

TEST_F(DeviceFaults, ARankThatHasLeftIsNamed) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(succeeded(sum(mine, memory)));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(sum(mine, memory)));
      expect_failed(mine, "rank 1 has left the communicator");
      mine.synchronize();
      (void)setoCommAbort(mine.comm);
    } else {
      mine.synchronize();
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    }
    mine.comm = nullptr;
  });
}

TEST_F(DeviceFaults, GpusThatCannotBeUsed) {
  const auto all_are_refused = [&](const std::string& part) {
    SCOPED_TRACE(part);
    setoUniqueId id;
    ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
    on_threads(2, [&](DeviceRank& mine) { refuse_init(mine, 2, id, part); });
  };
  start_gpus(2, {{"SOFTWARE_GPU_PEERS", "none"}});
  all_are_refused("no peer access between the GPUs of rank ");
  inject("cuMemAlloc:2:2");  // out of memory on one rank
  all_are_refused("no 4 MiB of memory on GPU ");
  inject("cuModuleLoadData:218:1-");
  all_are_refused("the GPU kernels ");
}

TEST_F(DeviceFaults, KindsOfMemoryThatDifferAreRefused) {
  start_gpus(2);
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  on_threads(2, [&](DeviceRank& mine) {
    setoConfig_t config = device_config();
    if (mine.rank == 1) config.memory = setoMemoryHost;
    refuse_init(mine, 2, id, "SETO_MEMORY is 'device' on rank 0 and 'host' on rank 1", config);
  });
}

TEST_F(DeviceFaults, WithoutAContextOrADriverDeviceMemoryIsRefusedAndAutoIsHostMemory) {
  start_gpus(1);
  std::thread([&] {
    setoComm_t comm = nullptr;
    setoConfig_t config = device_config();
    EXPECT_TRUE(failed(setoCommInitRankConfig(&comm, 1, {}, 0, &config), setoInvalidUsage, "no CUDA context is current"));
    config.memory = setoMemoryAuto;
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&comm, 1, {}, 0, &config)));
    int device = 0;
    EXPECT_TRUE(succeeded(setoCommCuDevice(comm, &device)));
    EXPECT_EQ(device, -1);
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  }).join();
}

// ---- processes

struct Shared {
  setoUniqueId id;
  std::atomic<int> has_id;
  std::atomic<int> waiting;
};

class DeviceProcesses : public DeviceFaults {
 protected:
  void SetUp() override {
    DeviceFaults::SetUp();
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared{};
  }

  // One rank in this process, which has just been forked.
  bool run_rank(int rank, int ranks, int gpus, const std::function<void(DeviceRank&)>& body) {
    start_gpus(gpus);
    if (rank == 0) {
      EXPECT_TRUE(succeeded(setoGetUniqueId(&shared_->id)));
      shared_->has_id.store(1);
    }
    while (shared_->has_id.load() == 0) std::this_thread::yield();
    std::thread([&] {
      DeviceRank mine(driver(), rank, rank % gpus);
      setoConfig_t config = device_config();
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, ranks, shared_->id, rank, &config)));
      body(mine);
      if (mine.comm != nullptr) {
        EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      }
    }).join();
    TearDown();
    return !HasFailure();
  }

  Shared* shared_ = nullptr;
};

TEST_F(DeviceProcesses, AllReduceBetweenProcesses) {
  constexpr int kRanks = 3;
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < kRanks; ++rank)
    children.emplace_back([&, rank] {
      return run_rank(rank, kRanks, 2, [&](DeviceRank& mine) {
        for (const std::size_t count : {std::size_t{10}, std::size_t{5000}}) {
          auto* const memory = mine.upload(std::vector<float>(count, static_cast<float>(mine.rank + 1)));
          for (int round = 0; round < 2; ++round) ASSERT_TRUE(succeeded(sum(mine, memory, count)));
          EXPECT_EQ(mine.read(memory, count), std::vector<float>(count, 18));
        }
        EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
      });
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

TEST_F(DeviceProcesses, AProcessThatIsKilledWhileAKernelWaitsIsNamed) {
  ChildProcess victim([&] {
    return run_rank(1, 2, 2, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kCount, 1));
      ASSERT_TRUE(succeeded(sum(mine, memory)));
      mine.synchronize();
      shared_->waiting.fetch_add(1);
      for (;;) pause();
    });
  });
  ChildProcess survivor([&] {
    return run_rank(0, 2, 2, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kCount, 1));
      ASSERT_TRUE(succeeded(sum(mine, memory)));
      ASSERT_TRUE(succeeded(sum(mine, memory)));
      shared_->waiting.fetch_add(1);
      mine.synchronize();
      expect_failed(mine, "rank 1");
      expect_usable(mine, memory);
      (void)setoCommAbort(mine.comm);
      mine.comm = nullptr;
    });
  });
  const Deadline until = Deadline::after_ms(60'000);
  while (shared_->waiting.load() < 2 && !until.passed()) std::this_thread::yield();
  EXPECT_EQ(shared_->waiting.load(), 2);
  victim.kill_now();
  EXPECT_TRUE(survivor.wait());
}

}  // namespace
}  // namespace seto::testing
