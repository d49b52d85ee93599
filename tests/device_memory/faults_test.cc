// Ranks that are late, lost, different or aborted, and GPUs that cannot be used.
#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

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
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(succeeded(sum(mine, memory)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 2));
    if (mine.rank == 0) (void)sum_in_vain(mine, memory);
    expect_failed(mine, "did not end within 300 ms (its deadlineMs): rank 1 never came");
    (void)setoCommAbort(mine.comm);
    mine.comm = nullptr;
  });
}

TEST_F(DeviceFaults, AbortFromAnotherThreadEndsAKernel) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(sum(mine, memory)));
    }
    abort_rank_0(mine, memory);
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
  SETO_NEEDS_STAND_IN();
  const auto all_are_refused = [&](const std::string& part) {
    SCOPED_TRACE(part);
    setoUniqueId id;
    ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
    on_threads(2, [&](DeviceRank& mine) { refuse_init(mine, 2, id, part); });
  };
  start_gpus(2);
  inject("cuMemAlloc:2:2");  // out of memory on one rank
  all_are_refused("no 4096 KiB of memory on GPU ");
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
  kill_while_both_wait(victim, survivor);
}

}  // namespace
}  // namespace seto::testing
