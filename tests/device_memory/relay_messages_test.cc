// Sends, receives and exchanges with counts between GPUs that do not reach each other.
#include "tests/device_memory/messages.h"
#include "tests/device_memory/relay_hosts.h"

namespace seto::testing {
namespace {

constexpr std::size_t kLong = 150'001;  // more than the slots of a pair hold

class DeviceRelayMessages : public DeviceHosts {};

TEST_F(DeviceRelayMessages, OneMessageOfAnySizeAndType) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 0, 3, 1000, 4096, 4097, 9000}) send_to_1<float>(mine, count, setoFloat32);
    send_to_1<std::uint8_t>(mine, 77, setoUint8);
    send_to_1<double>(mine, 301, setoFloat64);
    send_to_1<float>(mine, kLong, setoFloat32);
    ring(mine, 2, 5);
    ring(mine, 2, kLong);
  });
}

TEST_F(DeviceRelayMessages, RingsOverTwoHostsOfTwoBetweenCollectives) {
  start_gpus(4);
  on_hosts({2, 2}, [&](DeviceRank& mine) {
    auto* const sums = mine.upload(std::vector<float>(3000, 1));
    for (const std::size_t count : {3, 20'000}) {
      ASSERT_TRUE(succeeded(setoAllReduce(sums, sums, 3000, setoFloat32, setoSum, mine.comm, mine.stream())));
      ring(mine, 4, count);
    }
    EXPECT_EQ(mine.read(sums, 3000), std::vector<float>(3000, 16));
    EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
  });
}

TEST_F(DeviceRelayMessages, RingsInWeakMemory) {
  start_gpus(2, {{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", "5"}});
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    for (const std::size_t count : {2, 9000, 40'000}) ring(mine, 2, count);
  });
}

// The GPUs of one host, whose messages the host carries over shared memory.
TEST_F(DeviceRelayMessages, SomeGpusWithoutPeerAccess) {
  start_gpus(3, {{"SOFTWARE_GPU_PEERS", "0-1,0-2"}});
  on_ranks(3, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 7000, 100'000}) ring(mine, 3, count);
  });
}

TEST_F(DeviceRelayMessages, SeveralMessagesOfAGroupInBothDirections) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    constexpr std::size_t kCounts[] = {100, 0, 20'000, 3, 60'000};
    const int peer = 1 - mine.rank;
    std::vector<std::int32_t*> in, out;
    for (int i = 0; i < 5; ++i) {
      out.push_back(mine.upload(numbers<std::int32_t>(mine.rank, kCounts[i], i)));
      in.push_back(mine.upload(std::vector<std::int32_t>(kCounts[i], -1)));
    }
    ASSERT_TRUE(succeeded(setoGroupStart()));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(setoSend(out[i], kCounts[i], setoInt32, peer, mine.comm, mine.stream())));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(setoRecv(in[i], kCounts[i], setoInt32, peer, mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(mine.read(in[i], kCounts[i]), numbers<std::int32_t>(peer, kCounts[i], i));
    // Sends that were issued long before their receives.
    if (mine.rank == 0)
      for (int i = 0; i < 5; ++i) ASSERT_TRUE(succeeded(setoSend(out[i], kCounts[i], setoInt32, 1, mine.comm, mine.stream())));
    else
      for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(succeeded(setoRecv(in[i], kCounts[i], setoInt32, 0, mine.comm, mine.stream())));
        EXPECT_EQ(mine.read(in[i], kCounts[i]), numbers<std::int32_t>(0, kCounts[i], i));
      }
  });
}

TEST_F(DeviceRelayMessages, AnExchangeWithCountsOverTwoHostsOfTwo) {
  constexpr int kRanks = 4;
  start_gpus(kRanks);
  on_hosts({2, 2}, [&](DeviceRank& mine) {
    const auto own = static_cast<std::size_t>(mine.rank);
    // Rank r sends 1000 (r + 1) + 10 peer numbers to each peer, and nothing to rank 2.
    const auto count_of = [](std::size_t from, std::size_t to) { return to == 2 ? 0 : 1000 * (from + 1) + 10 * to; };
    std::vector<std::size_t> to(kRanks), from(kRanks);
    std::vector<float> sent, expected;
    for (std::size_t peer = 0; peer < kRanks; ++peer) {
      to[peer] = count_of(own, peer);
      from[peer] = count_of(peer, own);
      const auto out = numbers<float>(mine.rank, to[peer], static_cast<int>(peer));
      const auto in = numbers<float>(static_cast<int>(peer), from[peer], mine.rank);
      sent.insert(sent.end(), out.begin(), out.end());
      expected.insert(expected.end(), in.begin(), in.end());
    }
    auto* const input = mine.upload(sent);
    auto* const output = mine.upload(std::vector<float>(expected.size(), -1));
    for (int round = 0; round < 2; ++round)
      ASSERT_TRUE(succeeded(
          setoAllToAllv(input, to.data(), nullptr, output, from.data(), nullptr, setoFloat32, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(output, expected.size()), expected);
  });
}

TEST_F(DeviceRelayMessages, AGraphOfMessagesIsReplayed) {
  start_gpus(2);
  on_hosts({2, 1}, [&](DeviceRank& mine) {
    constexpr std::size_t kElements = 25'000;
    auto* const memory = mine.upload(numbers<std::int32_t>(mine.rank, kElements));
    const auto transfer = [&] {
      EXPECT_TRUE(succeeded(mine.rank == 0 ? setoSend(memory, kElements, setoInt32, 1, mine.comm, mine.stream())
                                           : setoRecv(memory, kElements, setoInt32, 0, mine.comm, mine.stream())));
    };
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
    transfer();
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    for (int round = 0; round < 3; ++round) {
      mine.write(memory, numbers<std::int32_t>(mine.rank, kElements, round));
      ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
      EXPECT_EQ(mine.read(memory, kElements), numbers<std::int32_t>(0, kElements, round));
    }
    mine.write(memory, numbers<std::int32_t>(mine.rank, kElements, 9));
    transfer();
    EXPECT_EQ(mine.read(memory, kElements), numbers<std::int32_t>(0, kElements, 9));
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

}  // namespace
}  // namespace seto::testing
