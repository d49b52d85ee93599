// Messages between GPUs that do not reach each other, which differ at their ends, are never received, or lose a rank.
#include "tests/device_memory/relay_hosts.h"

namespace seto::testing {
namespace {

// With its kernel at an end, such a message is in the slots of a pair, and more than what a link takes before it is received.
constexpr std::size_t kStaged = 75'000;
constexpr std::size_t kLong = 400'000;  // more than the slots and a link take

class DeviceRelayMessageFaults : public DeviceHosts {
 protected:
  // Rank 0 sends and leaves. The message arrives nevertheless, and the next one is missed.
  static void leave_after_a_message(DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kStaged, static_cast<float>(mine.rank)));
    if (mine.rank == 0) {
      ASSERT_TRUE(succeeded(send(mine, memory, kStaged)));
      EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      mine.comm = nullptr;
      return;
    }
    ASSERT_TRUE(succeeded(receive(mine, memory, kStaged)));
    EXPECT_EQ(mine.read(memory, kStaged), std::vector<float>(kStaged, 0));
    ASSERT_TRUE(succeeded(receive(mine, memory, 5)));
    expect_failed(mine, "receive of 5 float from rank 0: rank 0 has left the communicator");
    mine.synchronize();
    abort(mine);
  }
};
class DeviceRelayMessageProcesses : public DeviceRelayMessageFaults {};

TEST_F(DeviceRelayMessageFaults, LengthsAndTypesThatDifferAreNamedOnBothRanks) {
  start_gpus(2);
  for (const auto& [sent, expected] : {std::pair<std::size_t, std::size_t>{10, 12}, {kLong, 4}, {4, kLong}})
    on_hosts({2, 1}, [&, sent = sent, expected = expected](DeviceRank& mine) {
      auto* const memory = mine.upload(std::vector<float>(kLong, 1));
      ASSERT_TRUE(succeeded(mine.rank == 0 ? send(mine, memory, sent) : receive(mine, memory, expected)));
      mine.synchronize();
      expect_failed(mine, "rank 1 calls receive of " + std::to_string(expected) +
                              " float from rank 0, but rank 0 calls send of " + std::to_string(sent) + " float to rank 1");
      abort(mine);
      expect_usable(mine, memory);
    });
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    auto* const memory = mine.upload(std::vector<float>(kCount, 1));
    ASSERT_TRUE(
        succeeded(mine.rank == 0 ? send(mine, memory) : setoRecv(memory, kCount, setoInt32, 0, mine.comm, mine.stream())));
    expect_failed(mine, "rank 1 calls receive of 1000 int32 from rank 0, but rank 0 calls send of 1000 float to rank 1");
    abort(mine);
  });
}

TEST_F(DeviceRelayMessageFaults, AMessageThatIsNeverReceivedIsNamedAtTheDeadline) {
  start_gpus(2);
  on_hosts(
      {2, 1},
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
}

TEST_F(DeviceRelayMessageFaults, AReplayInVainIsNamedAtTheDeadline) {
  start_gpus(2);
  for (const bool sends : {true, false})
    on_hosts(
        {2, 1},
        [&](DeviceRank& mine) {
          auto* const memory = mine.upload(std::vector<float>(kLong, 1));
          {
            const RepeatedCalls graph(
                mine, [&] { EXPECT_TRUE(succeeded(mine.rank == 0 ? send(mine, memory, kLong) : receive(mine, memory, kLong))); });
            if (mine.rank == (sends ? 0 : 1)) graph.launch();
            mine.synchronize();
            expect_failed(mine, "sends and receives of a graph on rank " + std::string(sends ? "0" : "1") +
                                    " did not end within 300 ms (SETO_OPERATION_TIMEOUT_MS)");
            abort(mine);
          }
          expect_usable(mine, memory);
        },
        device_config(300));
}

// The kernel has ended, so it is the end of the communicator that waits for the receiver.
TEST_F(DeviceRelayMessageFaults, TheEndOfACommunicatorWaitsForAReceiverUntilTheDeadline) {
  start_gpus(2);
  on_hosts(
      {2, 1},
      [&](DeviceRank& mine) {
        const std::string reason = "what it has sent to rank 1 was not received within 300 ms (SETO_OPERATION_TIMEOUT_MS)";
        auto* const memory = mine.upload(std::vector<float>(kStaged, 1));
        if (mine.rank == 1) return expect_failed(mine, reason), abort(mine);
        setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
        call.deadlineMs = kPatienceMs;
        ASSERT_TRUE(succeeded(setoSendConfig(memory, kStaged, setoFloat32, 1, mine.comm, mine.stream(), &call)));
        mine.synchronize();
        EXPECT_TRUE(failed(setoCommDestroy(mine.comm), setoTimeout, reason));
        mine.comm = nullptr;
      },
      device_config(300));
}

TEST_F(DeviceRelayMessageFaults, AMessageOfARankThatHasLeftIsReceivedAndTheNextOneIsNot) {
  start_gpus(2);
  on_hosts({2, 1}, &DeviceRelayMessageFaults::leave_after_a_message);
}

TEST_F(DeviceRelayMessageFaults, GpusWithoutPeerAccessReceiveAMessageOfARankThatHasLeft) {
  start_gpus(2, {{"SOFTWARE_GPU_PEERS", "none"}});
  on_ranks(2, &DeviceRelayMessageFaults::leave_after_a_message);
}

TEST_F(DeviceRelayMessageFaults, AbortEndsAKernelThatWaits) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
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

// Two processes of one host, whose GPUs have no peer access: they exchange messages of all kinds until one is killed.
TEST_F(DeviceRelayMessageProcesses, ProcessesWithoutPeerAccessExchangeMessagesAndOneIsKilled) {
  constexpr std::size_t kExchanged = 150'000;  // more than the slots hold
  const auto exchange = [](DeviceRank& mine) {
    const int peer = 1 - mine.rank;
    auto* const out = mine.upload(std::vector<float>(kExchanged, static_cast<float>(mine.rank)));
    auto* const in = mine.upload(std::vector<float>(kExchanged, -1));
    ASSERT_TRUE(succeeded(setoGroupStart()));
    ASSERT_TRUE(succeeded(send(mine, out, kExchanged, peer)));
    ASSERT_TRUE(succeeded(receive(mine, in, kExchanged, peer)));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    EXPECT_EQ(mine.read(in, kExchanged), std::vector<float>(kExchanged, static_cast<float>(peer)));
    const std::size_t counts[] = {3, 20'000};  // to each rank
    const std::size_t own = counts[mine.rank];
    const std::size_t from[] = {own, own};
    ASSERT_TRUE(succeeded(setoAllToAllv(out, counts, nullptr, in, from, nullptr, setoFloat32, mine.comm, mine.stream())));
    std::vector<float> expected(2 * own, 0);
    std::fill(expected.begin() + static_cast<std::ptrdiff_t>(own), expected.end(), 1.0F);
    EXPECT_EQ(mine.read(in, 2 * own), expected);
  };
  const Variables no_peers{{"SOFTWARE_GPU_PEERS", "none"}};
  ChildProcess victim([&] {
    return run_rank(
        1, 2, 2,
        [&](DeviceRank& mine) {
          exchange(mine);
          shared_->waiting.fetch_add(1);
          for (;;) pause();
        },
        device_config(), no_peers);
  });
  ChildProcess survivor([&] {
    return run_rank(
        0, 2, 2,
        [&](DeviceRank& mine) {
          exchange(mine);
          auto* const memory = mine.upload(std::vector<float>(kCount, 1));
          ASSERT_TRUE(succeeded(receive(mine, memory, kCount, 1)));
          shared_->waiting.fetch_add(1);
          mine.synchronize();
          expect_failed(mine, "receive of 1000 float from rank 1: rank 1 (");
          expect_usable(mine, memory);
          abort(mine);
        },
        device_config(), no_peers);
  });
  kill_while_both_wait(victim, survivor);
}

}  // namespace
}  // namespace seto::testing
