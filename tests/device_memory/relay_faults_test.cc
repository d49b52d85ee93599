// Ranks of other hosts that are late, lost or aborted, and the end of communicators whose messages are under way.
#include "src/base/log.h"
#include "tests/device_memory/relay_hosts.h"

namespace seto::testing {
namespace {

class DeviceRelayFaults : public DeviceHosts {};
class DeviceRelayProcesses : public DeviceHosts {};

TEST_F(DeviceRelayFaults, ARankThatNeverCallsIsNamedAtTheDeadline) {
  start_gpus(2);
  const LogCapture log;
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(succeeded(sum(mine, memory)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 2));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(sum_in_vain(mine, memory)));
      mine.synchronize();
      expect_failed(mine, "did not end within 300 ms (its deadlineMs): rank 1 never came; rank 0 waits for ");
      expect_usable(mine, memory);
    } else {
      expect_failed(mine, "rank 1 never came");
    }
    (void)setoCommDestroy(mine.comm);
    mine.comm = nullptr;
  });
  EXPECT_FALSE(log.contains("its memory stays allocated")) << "the launch ends with the failure";
}

TEST_F(DeviceRelayFaults, AbortFromAnotherThreadEndsAKernel) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(sum(mine, memory)));
    }
    abort_rank_0(mine, memory);
  });
}

TEST_F(DeviceRelayFaults, CallsThatDifferAreNamed) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(succeeded(
        setoAllReduce(memory, memory, kCount, setoFloat32, mine.rank == 0 ? setoSum : setoMax, mine.comm, mine.stream())));
    expect_failed(mine, "all_reduce of 1000 float, max");
    (void)setoCommAbort(mine.comm);
    mine.comm = nullptr;
  });
}

TEST_F(DeviceRelayFaults, ARankThatHasLeftIsNamed) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
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

TEST_F(DeviceRelayFaults, AReplayEndsWhenAnotherHostLeaves) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::relaxed)));
    EXPECT_TRUE(succeeded(sum(mine, memory)));
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 2));
    if (mine.rank == 0) {
      ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
      mine.synchronize();
      expect_failed(mine, "rank 1 has left the communicator");
      expect_usable(mine, memory);
      (void)setoCommAbort(mine.comm);
    } else {
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    }
    mine.comm = nullptr;
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

TEST_F(DeviceRelayFaults, AReplayInVainIsNamedAtTheDeadline) {
  start_gpus(2);
  on_hosts(
      {2, 1},
      [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kCount, 1));
        {
          const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(sum(mine, memory))); });
          if (mine.rank == 0) graph.launch();
          mine.synchronize();
          expect_failed(mine, "did not end within 300 ms (SETO_OPERATION_TIMEOUT_MS): rank 1 never came; rank 0 waits for ");
          if (mine.rank == 0) graph.launch();
          mine.synchronize();
          abort(mine);
        }
        expect_usable(mine, memory);
      },
      device_config(300));
}

// Destroy comes at once after the calls, and the results are there.
TEST_F(DeviceRelayFaults, DestroyRightAfterTheCalls) {
  start_gpus(4);
  on_hosts({2, 2}, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(20'000, 1));
    for (int round = 0; round < 4; ++round) ASSERT_TRUE(succeeded(sum(mine, memory, 20'000)));
    EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
    mine.comm = nullptr;
    EXPECT_EQ(mine.read(memory, 20'000), std::vector<float>(20'000, 256));
  });
}

TEST_F(DeviceRelayProcesses, AProcessOfAnotherHostThatIsKilledIsNamed) {
  const Hosts hosts{2, 1};
  const std::string first = host_of(hosts, 0), second = host_of(hosts, 1);
  ChildProcess victim([&] {
    return run_rank(
        1, 2, 2,
        [&](DeviceRank& mine) {
          auto* const memory = mine.upload(std::vector<float>(kCount, 1));
          ASSERT_TRUE(succeeded(sum(mine, memory)));
          mine.synchronize();
          shared_->waiting.fetch_add(1);
          for (;;) pause();
        },
        stated(device_config(), hosts, second));
  });
  ChildProcess survivor([&] {
    return run_rank(
        0, 2, 2,
        [&](DeviceRank& mine) {
          auto* const memory = mine.upload(std::vector<float>(kCount, 1));
          ASSERT_TRUE(succeeded(sum(mine, memory)));
          ASSERT_TRUE(succeeded(sum(mine, memory)));
          shared_->waiting.fetch_add(1);
          mine.synchronize();
          expect_failed(mine, "rank 1");
          expect_usable(mine, memory);
          (void)setoCommAbort(mine.comm);
          mine.comm = nullptr;
        },
        stated(device_config(), hosts, first));
  });
  kill_while_both_wait(victim, survivor);
}

}  // namespace
}  // namespace seto::testing
