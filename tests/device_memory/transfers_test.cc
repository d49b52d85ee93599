// Sends and receives, exchanges with counts, and groups of them, on the stand-in for the driver.
#include "tests/device_memory/messages.h"

namespace seto::testing {
namespace {

class DeviceTransfers : public DeviceMemory {};

TEST_F(DeviceTransfers, OneMessageOfAnySizeAndType) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 0, 3, 1000}) send_to_1<float>(mine, count, setoFloat32);
    send_to_1<std::uint8_t>(mine, 77, setoUint8);
    send_to_1<std::uint16_t>(mine, 501, setoFloat16);
    send_to_1<double>(mine, 300, setoFloat64);
    send_to_1<std::int64_t>(mine, 9, setoInt64);
  });
}

TEST_F(DeviceTransfers, MessagesLongerThanTheSlots) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    ring(mine, 2, 150'000);
    send_to_1<float>(mine, 200'001, setoFloat32);
  });
}

TEST_F(DeviceTransfers, ARingInAGroup) {
  start_gpus(2);  // ranks share GPUs
  on_ranks(4, [&](DeviceRank& mine) {
    for (const std::size_t count : {1, 5000, 40'000}) ring(mine, 4, count);
  });
}

TEST_F(DeviceTransfers, InWeakMemory) {
  start_gpus(3, {{"SOFTWARE_GPU_WEAK", "1"}, {"SOFTWARE_GPU_SEED", "11"}});
  on_ranks(3, [&](DeviceRank& mine) {
    for (const std::size_t count : {2, 9000}) ring(mine, 3, count);
  });
}

TEST_F(DeviceTransfers, SeveralMessagesToOnePeerAndToItself) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    constexpr std::size_t kCounts[] = {100, 0, 20'000, 3};
    const int peer = 1 - mine.rank;
    std::vector<std::int32_t*> in;
    std::int32_t* const copied = mine.upload(std::vector<std::int32_t>(700, -1));
    std::int32_t* const own = mine.upload(numbers<std::int32_t>(mine.rank, 700));
    std::vector<std::int32_t*> out;
    for (int i = 0; i < 4; ++i) {
      out.push_back(mine.upload(numbers<std::int32_t>(mine.rank, kCounts[i], i)));
      in.push_back(mine.upload(std::vector<std::int32_t>(kCounts[i], -1)));
    }
    ASSERT_TRUE(succeeded(setoGroupStart()));
    ASSERT_TRUE(succeeded(setoSend(own, 700, setoInt32, mine.rank, mine.comm, mine.stream())));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(succeeded(setoSend(out[i], kCounts[i], setoInt32, peer, mine.comm, mine.stream())));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(succeeded(setoRecv(in[i], kCounts[i], setoInt32, peer, mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(setoRecv(copied, 700, setoInt32, mine.rank, mine.comm, mine.stream())));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(mine.read(in[i], kCounts[i]), numbers<std::int32_t>(peer, kCounts[i], i));
    EXPECT_EQ(mine.read(copied, 700), numbers<std::int32_t>(mine.rank, 700));
  });
}

// The sends and receives of a group are one launch, in whatever order and on whatever streams they are named, and whatever else
// is between them.
TEST_F(DeviceTransfers, AGroupOfCallsOfAllKindsOnTwoStreams) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    constexpr std::size_t kCount = 90'000;
    const int peer = 1 - mine.rank;
    cuda::Stream second = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_create_with_priority(&second, cuda::kStreamNonBlocking, 0)));
    auto* const other = reinterpret_cast<setoStream_t>(second);
    auto* const out = mine.upload(numbers<float>(mine.rank, kCount));
    auto* const in = mine.upload(std::vector<float>(kCount, -1));
    auto* const sums = mine.upload(std::vector<float>(50, 2));
    const auto reduce = [&] {
      EXPECT_TRUE(succeeded(setoAllReduce(sums, sums, 50, setoFloat32, setoSum, mine.comm, mine.stream())));
    };
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(succeeded(setoGroupStart()));
      if (mine.rank == 0) reduce();
      ASSERT_TRUE(succeeded(setoSend(out, kCount, setoFloat32, peer, mine.comm, mine.stream())));
      ASSERT_TRUE(succeeded(setoRecv(in, kCount, setoFloat32, peer, mine.comm, other)));
      if (mine.rank == 1) reduce();
      ASSERT_TRUE(succeeded(setoGroupEnd()));
      // Later work on either stream comes after the group.
      ASSERT_TRUE(ok(mine.driver.stream_synchronize(second)));
      EXPECT_EQ(mine.read(in, kCount), numbers<float>(peer, kCount));
      EXPECT_EQ(mine.read(sums, 50), std::vector<float>(50, round == 0 ? 4.0F : 8.0F));
      mine.write(in, std::vector<float>(kCount, -1));
    }
    ASSERT_TRUE(ok(mine.driver.stream_destroy(second)));
  });
}

TEST_F(DeviceTransfers, OneThreadDrivesBothRanksInAGroup) {
  start_gpus(2);
  setenv("SETO_MEMORY", "device", 1);
  setoComm_t comms[2] = {};
  ASSERT_TRUE(succeeded(setoCommInitAll(comms, 2, nullptr)));
  unsetenv("SETO_MEMORY");
  {
    DeviceRank first(driver(), 0, 0), second(driver(), 1, 1);
    auto* const in = second.upload(std::vector<std::int32_t>(30'000, -1));
    ASSERT_TRUE(ok(driver().ctx_set_current(first.context)));
    auto* const out = first.upload(numbers<std::int32_t>(0, 30'000));
    ASSERT_TRUE(succeeded(setoGroupStart()));
    ASSERT_TRUE(succeeded(setoRecv(in, 30'000, setoInt32, 0, comms[1], second.stream())));
    ASSERT_TRUE(succeeded(setoSend(out, 30'000, setoInt32, 1, comms[0], first.stream())));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    ASSERT_TRUE(ok(driver().ctx_set_current(second.context)));
    EXPECT_EQ(second.read(in, 30'000), numbers<std::int32_t>(0, 30'000));
    for (const setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  }
}

TEST_F(DeviceTransfers, BetweenCollectives) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    auto* const sums = mine.upload(std::vector<float>(3000, 1));
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(succeeded(setoAllReduce(sums, sums, 3000, setoFloat32, setoSum, mine.comm, mine.stream())));
      send_to_1<float>(mine, 2000, setoFloat32);
      ring(mine, 2, 10);
    }
    EXPECT_EQ(mine.read(sums, 3000), std::vector<float>(3000, 8));
    EXPECT_TRUE(succeeded(setoCommFinalize(mine.comm)));
  });
}

TEST_F(DeviceTransfers, ACapturedPairIsReplayed) {
  start_gpus(2);
  on_ranks(2, [&](DeviceRank& mine) {
    constexpr std::size_t kCount = 25'000;
    auto* const memory = mine.upload(numbers<std::int32_t>(mine.rank, kCount));
    const auto transfer = [&] {
      if (mine.rank == 0)
        EXPECT_TRUE(succeeded(setoSend(memory, kCount, setoInt32, 1, mine.comm, mine.stream())));
      else
        EXPECT_TRUE(succeeded(setoRecv(memory, kCount, setoInt32, 0, mine.comm, mine.stream())));
    };
    ASSERT_TRUE(ok(mine.driver.stream_begin_capture(mine.cuda_stream, cuda::CaptureMode::thread_local_only)));
    transfer();
    cuda::Graph graph = nullptr;
    ASSERT_TRUE(ok(mine.driver.stream_end_capture(mine.cuda_stream, &graph)));
    cuda::GraphExec executable = nullptr;
    ASSERT_TRUE(ok(mine.driver.graph_instantiate(&executable, graph, 0)));
    for (int round = 0; round < 3; ++round) {
      mine.write(memory, numbers<std::int32_t>(mine.rank, kCount, round));
      ASSERT_TRUE(ok(mine.driver.graph_launch(executable, mine.cuda_stream)));
      EXPECT_EQ(mine.read(memory, kCount), numbers<std::int32_t>(0, kCount, round));
    }
    mine.write(memory, numbers<std::int32_t>(mine.rank, kCount, 9));
    transfer();
    EXPECT_EQ(mine.read(memory, kCount), numbers<std::int32_t>(0, kCount, 9));
    EXPECT_TRUE(ok(mine.driver.graph_exec_destroy(executable)));
    EXPECT_TRUE(ok(mine.driver.graph_destroy(graph)));
  });
}

// ---- counts

// Rank r sends (r + 2 * peer) % 5 * 300 elements to a peer, so some parts are empty.
TEST_F(DeviceTransfers, AllToAllvWithEmptyParts) {
  constexpr int kRanks = 4;
  start_gpus(2);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    const auto count_of = [](int from, int to) { return static_cast<std::size_t>((from + 2 * to) % 5) * 300; };
    std::vector<std::size_t> send_counts, receive_counts;
    std::vector<float> sent, expected;
    for (int peer = 0; peer < kRanks; ++peer) {
      send_counts.push_back(count_of(mine.rank, peer));
      receive_counts.push_back(count_of(peer, mine.rank));
      const std::vector<float> out = numbers<float>(mine.rank, send_counts.back(), peer);
      const std::vector<float> in = numbers<float>(peer, receive_counts.back(), mine.rank);
      sent.insert(sent.end(), out.begin(), out.end());
      expected.insert(expected.end(), in.begin(), in.end());
    }
    auto* const input = mine.upload(sent);
    auto* const output = mine.upload(std::vector<float>(expected.size(), -1));
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(succeeded(setoAllToAllv(input, send_counts.data(), nullptr, output, receive_counts.data(), nullptr, setoFloat32,
                                          mine.comm, mine.stream())));
      EXPECT_EQ(mine.read(output, expected.size()), expected);
    }
    const std::vector<std::size_t> none(kRanks, 0);
    EXPECT_TRUE(succeeded(
        setoAllToAllv(input, none.data(), nullptr, output, none.data(), nullptr, setoFloat32, mine.comm, mine.stream())));
  });
}

TEST_F(DeviceTransfers, AllGathervAndReduceScatterv) {
  constexpr int kRanks = 3;
  start_gpus(kRanks);
  on_ranks(kRanks, [&](DeviceRank& mine) {
    constexpr std::size_t kCounts[] = {700, 0, 5001};
    constexpr std::size_t kBegins[] = {0, 700, 700}, kAll = 5701;
    const std::size_t own = kCounts[mine.rank];
    const auto index = static_cast<std::size_t>(mine.rank);
    std::vector<float> all, part = numbers<float>(mine.rank, own);
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<float> one = numbers<float>(rank, kCounts[rank]);
      all.insert(all.end(), one.begin(), one.end());
    }
    auto* const input = mine.upload(part);
    auto* const gathered = mine.upload(std::vector<float>(kAll, -1));
    ASSERT_TRUE(succeeded(setoAllGatherv(input, own, gathered, kCounts, nullptr, setoFloat32, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(gathered, kAll), all);
    // Parts in the order of the ranks from the last one on, with gaps; in a group, whose copies of the arrays are used.
    auto* const spread = mine.upload(std::vector<float>(kAll + 20, -1));
    ASSERT_TRUE(succeeded(setoGroupStart()));
    {
      std::vector<std::size_t> counts(std::begin(kCounts), std::end(kCounts)), places{5021, 5011, 0};
      ASSERT_TRUE(
          succeeded(setoAllGatherv(input, own, spread, counts.data(), places.data(), setoFloat32, mine.comm, mine.stream())));
      counts.assign(3, 0);
    }
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    std::vector<float> expected = numbers<float>(2, 5001);
    expected.resize(5021, -1);
    const std::vector<float> first = numbers<float>(0, 700);
    expected.insert(expected.end(), first.begin(), first.end());
    EXPECT_EQ(mine.read(spread, kAll + 20), expected);

    auto* const whole = mine.upload(numbers<float>(mine.rank, kAll));
    auto* const reduced = mine.upload(std::vector<float>(own, -1));
    ASSERT_TRUE(succeeded(setoReduceScatterv(whole, reduced, kCounts, setoFloat32, setoSum, mine.comm, mine.stream())));
    std::vector<float> sums(own, 0);
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<float> one = numbers<float>(rank, kAll);
      for (std::size_t i = 0; i < own; ++i) sums[i] += one[kBegins[index] + i];
    }
    EXPECT_EQ(mine.read(reduced, own), sums);
  });
}

}  // namespace
}  // namespace seto::testing
