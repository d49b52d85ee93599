// Kernels that lend buffers and are stopped: by an abort, a failed launch or a lost rank; while a graph is replayed, and while
// the driver waits for work of the program.
#include <atomic>
#include <barrier>

#include "tests/device_memory/device_faults.h"
#include "tests/device_memory/lent_calls.h"

namespace seto::testing {
namespace {

constexpr int kPair = 2;

class DeviceStopping : public DeviceFaults {
 protected:
  // The ranks have lent each other buffers, and can do so again.
  static void lend_once(DeviceRank& mine, std::int32_t* input, std::int32_t* output) {
    EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
    mine.synchronize();
  }
  static void abort_by_a_thread(DeviceRank& mine) {
    std::thread([&] { EXPECT_TRUE(succeeded(setoCommAbort(mine.comm))); }).join();
    mine.comm = nullptr;
  }
  static void expect_usable(DeviceRank& mine, std::int32_t* memory) {
    mine.write(memory, all_of(7));
    EXPECT_EQ(mine.read(memory, kLent), all_of(7));
  }
};

// No event tells of the kernel of a replay, and its communicator is gone before the second half of the stop.
TEST_F(DeviceStopping, AbortEndsReplaysThatLend) {
  start_gpus(kPair);
  std::barrier captured(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    auto* const input = mine.upload(all_of(mine.rank + 1));
    auto* const output = mine.upload(all_of(-1));
    lend_once(mine, input, output);
    const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(lent_sum(mine, input, output))); });
    captured.arrive_and_wait();
    if (mine.rank == 0) {
      for (int round = 0; round < 3; ++round) graph.launch();
      abort_by_a_thread(mine);
      mine.synchronize();
    } else {
      expect_failed(mine, "setoCommAbort was called on rank 0");
      abort(mine);
    }
    expect_usable(mine, output);
  });
}

// A rank that fails while the replay of another one waits: the watcher ends the kernel.
TEST_F(DeviceStopping, ALostRankEndsReplaysThatLend) {
  start_gpus(kPair);
  std::barrier captured(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    auto* const input = mine.upload(all_of(mine.rank + 1));
    auto* const output = mine.upload(all_of(-1));
    lend_once(mine, input, output);
    {
      const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(lent_sum(mine, input, output))); });
      captured.arrive_and_wait();
      if (mine.rank == 0) {
        graph.launch();
        mine.synchronize();
      }
      if (mine.rank == 1) abort_by_a_thread(mine);
    }
    if (mine.rank == 0) {
      expect_failed(mine, "setoCommAbort was called on rank 1");
      abort(mine);
    }
    expect_usable(mine, output);
  });
}

// Replays that were launched before an abort end, and so do those that follow the failure of a communicator that still exists.
TEST_F(DeviceStopping, ReplaysOfMessagesEndAfterAnAbortOfTheOtherRank) {
  start_gpus(kPair);
  std::barrier captured(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    {
      const RepeatedCalls graph(mine, [&] {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        EXPECT_TRUE(succeeded(send(mine, memory, kCount / 2, 1 - mine.rank)));
        EXPECT_TRUE(succeeded(receive(mine, memory + kCount / 2, kCount / 2, 1 - mine.rank)));
        EXPECT_TRUE(succeeded(setoGroupEnd()));
      });
      captured.arrive_and_wait();
      graph.launch();
      mine.synchronize();
      captured.arrive_and_wait();
      for (int round = 0; round < 3; ++round) graph.launch();  // of rank 1, which ends at some moment
      if (mine.rank == 1) abort_by_a_thread(mine);
      mine.synchronize();
      if (mine.rank == 0) {
        for (int round = 0; round < 3; ++round) graph.launch();
        mine.synchronize();
        expect_failed(mine, "setoCommAbort was called on rank 1");
        graph.launch();
        mine.synchronize();
        abort(mine);
      }
    }
    DeviceFaults::expect_usable(mine, memory);
  });
}

// The kernel was launched, and then the driver refuses the event behind it. Nothing watches that kernel.
TEST_F(DeviceStopping, ALaunchThatFailsBehindItsKernelIsStopped) {
  SETO_NEEDS_STAND_IN();
  start_gpus(kPair);
  std::barrier stopped(kPair);
  on_ranks(kPair, [&](DeviceRank& mine) {
    auto* const input = mine.upload(all_of(mine.rank + 1));
    auto* const output = mine.upload(all_of(-1));
    lend_once(mine, input, output);
    if (mine.rank == 0) {
      inject("cuEventRecord:999:2");
      EXPECT_TRUE(failed(lent_sum(mine, input, output), setoSystemError, "cuEventRecord"));
      mine.synchronize();
    }
    expect_failed(mine, "rank 0 could not launch its call of all_reduce");
    stopped.arrive_and_wait();  // the end of a communicator would let the watcher look again
    abort(mine);
    expect_usable(mine, output);
  });
}

// Aborts come while ranks read each other's buffers, wait, launch or have ended.
TEST_F(DeviceStopping, AbortAfterAnyNumberOfCallsThatLend) {
  start_gpus(kRanks);
  for (const int calls : {1, 2, 5, 11}) {
    std::barrier begin(kRanks);
    std::atomic<int> issued{0};
    on_ranks(kRanks, [&](DeviceRank& mine) {
      auto* const input = mine.upload(all_of(mine.rank + 1));
      auto* const output = mine.upload(all_of(-1));
      begin.arrive_and_wait();
      std::thread aborter;
      if (mine.rank == 0)
        aborter = std::thread([&] {
          while (issued.load() < calls) std::this_thread::yield();
          EXPECT_TRUE(succeeded(setoCommAbort(mine.comm)));
        });
      while (lent_sum(mine, input, output) == setoSuccess) {
        if (mine.rank == 0) issued.fetch_add(1);
        mine.synchronize();
      }
      if (aborter.joinable()) aborter.join();
      if (mine.rank != 0) {
        expect_failed(mine, "setoCommAbort was called on rank 0");
        (void)setoCommAbort(mine.comm);
      }
      mine.comm = nullptr;
      expect_usable(mine, output);
    });
  }
}

// The driver frees the memory of a communicator only when a kernel of the program has ended. Other communicators go on meanwhile:
// their calls end, and so do those that wait in vain.
TEST_F(DeviceStopping, CallsAreWatchedWhileMemoryIsFreed) {
  start_gpus(kPair);
  std::barrier meeting(kPair);
  setoUniqueId id;
  ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
  on_ranks(kPair, [&](DeviceRank& mine) {
    setoComm_t other = nullptr;
    const setoConfig_t config = device_config();
    ASSERT_TRUE(succeeded(setoCommInitRankConfig(&other, kPair, id, mine.rank, const_cast<setoConfig_t*>(&config))));
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    EXPECT_TRUE(succeeded(sum(mine, memory)));
    mine.synchronize();
    const cuda::Stream stream = make_stream();
    WaitingKernel waiting;
    if (mine.rank == 0) waiting = launch_waiting_kernel(stream);
    meeting.arrive_and_wait();
    EXPECT_TRUE(succeeded(setoCommDestroy(other)));
    meeting.arrive_and_wait();
    EXPECT_TRUE(succeeded(sum(mine, memory)));
    EXPECT_EQ(mine.read(memory, kCount), std::vector<float>(kCount, 4));
    if (mine.rank == 0) {
      EXPECT_TRUE(succeeded(sum_in_vain(mine, memory)));
      mine.synchronize();
    }
    expect_failed(mine, "rank 1 never came");
    abort(mine);
    meeting.arrive_and_wait();
    if (mine.rank == 0) {
      EXPECT_EQ(waiting.has_ended(), 0U);
      waiting.let_end();
    }
    EXPECT_TRUE(ok(mine.driver.stream_synchronize(stream)));
    EXPECT_TRUE(ok(mine.driver.stream_destroy(stream)));
  });
}

// ---- processes

class DeviceStoppingProcesses : public DeviceProcesses {};

TEST_F(DeviceStoppingProcesses, AbortEndsACallThatLends) {
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < kPair; ++rank)
    children.emplace_back([&, rank] {
      return run_rank(rank, kPair, kPair, [&](DeviceRank& mine) {
        auto* const input = mine.upload(all_of(mine.rank + 1));
        auto* const output = mine.upload(all_of(-1));
        EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
        EXPECT_EQ(mine.read(output, kLent), all_of(3));
        if (mine.rank == 0) {
          EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
          std::thread([&] { EXPECT_TRUE(succeeded(setoCommAbort(mine.comm))); }).join();
          mine.synchronize();
        } else {
          expect_failed(mine, "setoCommAbort was called on rank 0");
          (void)setoCommAbort(mine.comm);
        }
        mine.comm = nullptr;
        mine.write(output, all_of(7));
        EXPECT_EQ(mine.read(output, kLent), all_of(7));
      });
    });
  for (ChildProcess& child : children) EXPECT_TRUE(child.wait());
}

// The victim's kernel lends, too, and the survivor may be reading there when it dies.
TEST_F(DeviceStoppingProcesses, AProcessThatDiesEndsCallsAndReplaysThatLend) {
  ChildProcess victim([&] {
    return run_rank(1, kPair, kPair, [&](DeviceRank& mine) {
      auto* const input = mine.upload(all_of(2));
      auto* const output = mine.upload(all_of(-1));
      EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
      const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(lent_sum(mine, input, output))); });
      mine.synchronize();
      shared_->waiting.fetch_add(1);
      for (;;) pause();
    });
  });
  ChildProcess survivor([&] {
    return run_rank(0, kPair, kPair, [&](DeviceRank& mine) {
      auto* const input = mine.upload(all_of(1));
      auto* const output = mine.upload(all_of(-1));
      EXPECT_TRUE(succeeded(lent_sum(mine, input, output)));
      const RepeatedCalls graph(mine, [&] { EXPECT_TRUE(succeeded(lent_sum(mine, input, output))); });
      mine.synchronize();
      for (int round = 0; round < 2; ++round) graph.launch();
      shared_->waiting.fetch_add(1);
      mine.synchronize();
      expect_failed(mine, "rank 1");
      (void)setoCommAbort(mine.comm);
      mine.comm = nullptr;
      mine.write(output, all_of(7));
      EXPECT_EQ(mine.read(output, kLent), all_of(7));
    });
  });
  kill_while_both_wait(victim, survivor);
}

}  // namespace
}  // namespace seto::testing
