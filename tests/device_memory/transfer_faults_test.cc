// Messages that differ at their ends, never come, or whose peers are lost.
#include <sys/mman.h>

#include <atomic>
#include <barrier>

#include "tests/device_memory/device_faults.h"

namespace seto::testing {
namespace {

constexpr std::size_t kLong = 400'000;  // more than the slots of a pair hold

class DeviceTransferFaults : public DeviceFaults {};

TEST_F(DeviceTransferFaults, LengthsThatDifferAreNamedOnBothRanks) {
  start_gpus(2);
  for (const auto& [sent, expected] : {std::pair<std::size_t, std::size_t>{10, 12}, {kLong, 4}, {4, kLong}}) {
    on_ranks(2, [&, sent = sent, expected = expected](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kLong, 1));
      ASSERT_TRUE(succeeded(mine.rank == 0 ? send(mine, memory, sent) : receive(mine, memory, expected)));
      mine.synchronize();
      expect_failed(mine, "rank 1 calls receive of " + std::to_string(expected) +
                              " float from rank 0, but rank 0 calls send of " + std::to_string(sent) + " float to rank 1");
      abort(mine);
      expect_usable(mine, memory);
    });
  }
}

TEST_F(DeviceTransferFaults, TypesAndKindsThatDifferAreNamed) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(
        succeeded(mine.rank == 0 ? send(mine, memory) : setoRecv(memory, kCount, setoInt32, 0, mine.comm, mine.stream())));
    expect_failed(mine, "rank 1 calls receive of 1000 int32 from rank 0, but rank 0 calls send of 1000 float to rank 1");
    abort(mine);
  });
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    const std::size_t to_1[] = {0, kCount}, none[] = {0, 0};
    ASSERT_TRUE(succeeded(
        mine.rank == 1 ? receive(mine, memory)
                       : setoAllToAllv(memory, to_1, nullptr, nullptr, none, nullptr, setoFloat32, mine.comm, mine.stream())));
    expect_failed(mine, "but rank 0 calls send of 1000 float to rank 1 in all_to_all_v call 1");
    abort(mine);
  });
}

TEST_F(DeviceTransferFaults, ADifferenceInAGraphIsNamed) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
    EXPECT_TRUE(succeeded(mine.rank == 0 ? send(mine, memory, 30) : receive(mine, memory, 31)));
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
    mine.synchronize();
    expect_failed(mine, "rank 1 calls receive of 31 float from rank 0, but rank 0 calls send of 30 float to rank 1");
    abort(mine);
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

TEST_F(DeviceTransferFaults, AMessageThatIsNeverReceivedOrSentIsNamedAtTheDeadline) {
  start_gpus(2);
  on_ranks(
      2,
      [&](DeviceRank& mine) {
        auto* const memory = mine.upload(std::vector<float>(kLong, 1));
        if (mine.rank == 0) {
          ASSERT_TRUE(succeeded(send(mine, memory, kLong)));
        }
        mine.synchronize();
        expect_failed(mine,
                      "not ended within 300 ms (SETO_OPERATION_TIMEOUT_MS): send of 400000 float to rank 1 was not received");
        abort(mine);
        expect_usable(mine, memory);
      },
      device_config(300));
  // The first message of a group is there before the deadline of the group begins.
  std::barrier is_sent(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    if (mine.rank == 1) {
      is_sent.arrive_and_wait();
      setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
      call.deadlineMs = 3'000;
      ASSERT_TRUE(succeeded(setoGroupStart()));
      ASSERT_TRUE(succeeded(setoRecvConfig(memory, 5, setoFloat32, 0, mine.comm, mine.stream(), &call)));
      ASSERT_TRUE(succeeded(setoRecvConfig(memory + 10, 6, setoFloat32, 0, mine.comm, mine.stream(), &call)));
      ASSERT_TRUE(succeeded(setoGroupEnd()));
    } else {
      EXPECT_TRUE(succeeded(send(mine, memory, 5)));
      mine.synchronize();
      is_sent.arrive_and_wait();
    }
    expect_failed(mine, "receive of 6 float from rank 0 was not sent");
    abort(mine);
  });
}

TEST_F(DeviceTransferFaults, AMessageOfARankThatHasLeftIsReceivedAndTheNextOneIsNot) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, static_cast<float>(mine.rank)));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(setoBarrier(mine.comm, mine.stream())));
      ASSERT_TRUE(succeeded(send(mine, memory, 100)));
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      mine.comm = nullptr;
      return;
    }
    ASSERT_TRUE(succeeded(setoBarrier(mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(receive(mine, memory, 100)));
    EXPECT_EQ(mine.read(memory, 100), std::vector<float>(100, 0));
    ASSERT_TRUE(succeeded(receive(mine, memory, 5)));
    expect_failed(mine, "receive of 5 float from rank 0: rank 0 has left the communicator");
    mine.synchronize();
    abort(mine);
  });
}

TEST_F(DeviceTransferFaults, AbortEndsAKernelThatWaits) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    if (mine.rank == 1) {
      ASSERT_TRUE(succeeded(receive(mine, memory)));
      EXPECT_TRUE(succeeded(setoCommAbort(mine.comm)));
      mine.comm = nullptr;
      mine.synchronize();
      expect_usable(mine, memory);
    } else {
      expect_failed(mine, "setoCommAbort was called on rank 1");
      abort(mine);
    }
  });
}

TEST_F(DeviceTransferFaults, CallsThatAreWrong) {
  start_gpus(2);
  // Nothing of another rank is concerned.
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    EXPECT_TRUE(
        failed(send(mine, memory, 4, mine.rank), setoInvalidUsage, "put a send to the same rank and its receive into one"));
    int source = 0;
    EXPECT_TRUE(failed(setoRecvAny(memory, 4, setoFloat32, &source, mine.comm, mine.stream()), setoInvalidUsage,
                       "setoRecvAny: not on device memory in this version"));
    if (mine.rank == 0)
      EXPECT_TRUE(succeeded(send(mine, memory, 4)));
    else
      EXPECT_TRUE(succeeded(receive(mine, memory, 4)));
    mine.synchronize();
  });
  const auto ends_all = [&](const std::function<setoResult_t(DeviceRank&, float*)>& wrong, const std::string& part) {
    SCOPED_TRACE(part);
    on_ranks(2, [&](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kCount, 1));
      if (mine.rank == 0) {
        EXPECT_TRUE(failed(wrong(mine, memory), setoInvalidArgument, part));
      } else {
        EXPECT_TRUE(succeeded(receive(mine, memory)));
      }
      expect_failed(mine, "rank 0 could not launch its call of sends and receives");
      abort(mine);
    });
  };
  ends_all([](DeviceRank& mine, float*) { return send(mine, std::vector<float>(kCount).data()); }, "sendbuff: ");
  ends_all([](DeviceRank& mine, float* memory) { return send(mine, memory, kCount, 2); },
           "peer: 2 is not one of the ranks 0 to 1");
  ends_all([](DeviceRank& mine, float* memory) { return send(mine, memory, kCount + 1000); }, "but the allocation ends after ");
  ends_all(
      [](DeviceRank& mine, float* memory) {
        EXPECT_TRUE(succeeded(setoGroupStart()));
        EXPECT_TRUE(succeeded(send(mine, memory, 4, 0)));
        return setoGroupEnd();
      },
      "rank 0 sends 1 messages to itself in this group and receives 0");
}

// ---- processes

struct Shared {
  setoUniqueId id;
  std::atomic<int> has_id;
  std::atomic<int> waiting;
};

TEST_F(DeviceTransferFaults, AProcessThatIsKilledIsNamed) {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const shared = new (memory) Shared{};
  const auto run_rank = [&](int rank, const std::function<void(DeviceRank&)>& body) {
    start_gpus(2);
    if (rank == 0) {
      EXPECT_TRUE(succeeded(setoGetUniqueId(&shared->id)));
      shared->has_id.store(1);
    }
    while (shared->has_id.load() == 0) std::this_thread::yield();
    std::thread([&] {
      DeviceRank mine(driver(), rank, rank);
      setoConfig_t config = device_config();
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, 2, shared->id, rank, &config)));
      body(mine);
    }).join();
    TearDown();
    return !HasFailure();
  };
  // Both ranks exchange messages first, as processes.
  const auto exchange = [&](DeviceRank& mine, float* data) {
    ASSERT_TRUE(succeeded(setoGroupStart()));
    ASSERT_TRUE(succeeded(send(mine, data, 20'000, 1 - mine.rank)));
    ASSERT_TRUE(succeeded(receive(mine, data + 20'000, 20'000, 1 - mine.rank)));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    EXPECT_EQ(mine.read(data + 20'000, 20'000), std::vector<float>(20'000, static_cast<float>(1 - mine.rank)));
  };
  ChildProcess victim([&] {
    return run_rank(1, [&](DeviceRank& mine) {
      exchange(mine, mine.upload(std::vector<float>(40'000, 1)));
      shared->waiting.fetch_add(1);
      for (;;) pause();
    });
  });
  ChildProcess survivor([&] {
    return run_rank(0, [&](DeviceRank& mine) {
      auto* const data = mine.upload(std::vector<float>(40'000, 0));
      exchange(mine, data);
      ASSERT_TRUE(succeeded(receive(mine, data, kCount, 1)));
      shared->waiting.fetch_add(1);
      mine.synchronize();
      expect_failed(mine, "receive of 1000 float from rank 1: rank 1 (");
      expect_usable(mine, data);
      abort(mine);
    });
  });
  const Deadline until = Deadline::after_ms(60'000);
  while (shared->waiting.load() < 2 && !until.passed()) std::this_thread::yield();
  EXPECT_EQ(shared->waiting.load(), 2);
  victim.kill_now();
  EXPECT_TRUE(survivor.wait());
}

}  // namespace
}  // namespace seto::testing
