// Groups through the C API: calls that are queued, issued together, and rejected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "tests/support/api_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;
constexpr const char* kGood = "setoSuccess";

class Groups : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Groups, ::testing::Values(Ranks::as_threads, Ranks::as_processes),
                         [](const auto& tested) { return tested.param == Ranks::as_threads ? "Threads" : "Processes"; });

Floats filled(int from, int to, std::size_t message, std::size_t count) {
  return Floats(count, static_cast<float>(from * 100 + to * 10) + static_cast<float>(message));
}

struct Message {
  int from;
  int to;
  std::size_t count;
};

// Every rank draws the same messages and queues its own ends of them.
TEST_P(Groups, DeliverAllOfManyRandomMessages) {
  static constexpr std::uint64_t kSeed = 11;
  RecordProperty("seed", kSeed);
  EXPECT_TRUE(run_ranks(GetParam(), 4, [](ApiRank& own) {
    std::mt19937_64 random(kSeed);
    for (int round = 0; round < 30; ++round) {
      std::vector<Message> messages(random() % 30);
      for (Message& message : messages)
        message = {static_cast<int>(random() % 4), static_cast<int>(random() % 4),
                   random() % (random() % 4 == 0 ? 200'000 : 100)};
      std::vector<Floats> out(messages.size()), in(messages.size());
      EXPECT_EQ(setoGroupStart(), setoSuccess);
      for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        out[i] = filled(m.from, m.to, i, m.count);
        in[i].assign(m.count, -1);
        if (m.from == own.rank) {
          EXPECT_EQ(setoSend(out[i].data(), m.count, setoFloat32, m.to, own.comm, nullptr), setoSuccess);
        }
        if (m.to == own.rank) {
          EXPECT_EQ(setoRecv(in[i].data(), m.count, setoFloat32, m.from, own.comm, nullptr), setoSuccess);
        }
      }
      EXPECT_EQ(outcome(setoGroupEnd()), kGood) << "round " << round << " of seed " << kSeed;
      for (std::size_t i = 0; i < messages.size(); ++i)
        if (messages[i].to == own.rank) {
          EXPECT_EQ(in[i], out[i]) << "round " << round << " of seed " << kSeed;
        }
    }
  }));
}

// Rank 2 takes no part in the first message, so its first call is the exchange. The last message must not overtake the exchange
// on rank 2 either. A message to the rank itself may have its ends before and after the exchange.
TEST_P(Groups, KeepMessagesAndExchangesInOrder) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    constexpr std::size_t kLong = 500'000, kPart = 100;
    const int right = (own.rank + 1) % 3, left = (own.rank + 2) % 3;
    const std::vector<std::size_t> counts(3, kPart);
    const Floats first = filled(0, 1, 0, 10), mine = filled(own.rank, own.rank, 7, 5);
    const Floats out = filled(own.rank, right, 1, kLong), parts(3 * kPart, static_cast<float>(own.rank));
    for (int round = 0; round < 3; ++round) {
      Floats first_in(10), parts_in(3 * kPart), in(kLong), mine_in(5);
      EXPECT_EQ(setoGroupStart(), setoSuccess);
      if (own.rank == 0) {
        EXPECT_EQ(setoSend(first.data(), 10, setoFloat32, 1, own.comm, nullptr), setoSuccess);
      }
      if (own.rank == 1) {
        EXPECT_EQ(setoRecv(first_in.data(), 10, setoFloat32, 0, own.comm, nullptr), setoSuccess);
      }
      EXPECT_EQ(setoSend(mine.data(), 5, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(setoAllToAllv(parts.data(), counts.data(), nullptr, parts_in.data(), counts.data(), nullptr, setoFloat32,
                              own.comm, nullptr),
                setoSuccess);
      EXPECT_EQ(setoRecv(mine_in.data(), 5, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(setoSend(out.data(), kLong, setoFloat32, right, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(setoRecv(in.data(), kLong, setoFloat32, left, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(outcome(setoGroupEnd()), kGood) << "rank " << own.rank << ", round " << round;
      EXPECT_EQ(in, filled(left, own.rank, 1, kLong));
      EXPECT_EQ(mine_in, mine);
      EXPECT_EQ(parts_in[2 * kPart], 2);
      if (own.rank == 1) {
        EXPECT_EQ(first_in, first);
      }
    }
  }));
}

// The receiver has one stream, so it receives the messages in the order of its calls. The third must not run together with the
// first, whose stream it shares.
TEST_P(Groups, KeepTheOrderOfMessagesAcrossStreams) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    constexpr std::size_t kMessages = 5;
    setoStream_t streams[2] = {};
    for (setoStream_t& stream : streams) EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    std::vector<Floats> out, in;
    for (std::size_t i = 0; i < kMessages; ++i) {
      out.push_back(filled(0, 1, i, 10'000));
      in.emplace_back(10'000);
    }
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    for (std::size_t i = 0; i < kMessages; ++i) {
      if (own.rank == 0) {
        EXPECT_EQ(setoSend(out[i].data(), out[i].size(), setoFloat32, 1, own.comm, streams[i % 2]), setoSuccess);
      } else {
        EXPECT_EQ(setoRecv(in[i].data(), in[i].size(), setoFloat32, 0, own.comm, streams[0]), setoSuccess);
      }
    }
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    for (const setoStream_t stream : streams) {
      std::uint64_t position = 0;
      EXPECT_EQ(setoStreamPosition(stream, &position), setoSuccess);
      EXPECT_EQ(outcome(setoStreamWait(stream, position, 0)), kGood);
    }
    if (own.rank == 1) {
      EXPECT_EQ(in, out);
    }
    for (const setoStream_t stream : streams) EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST_P(Groups, NestAndBlockOnlyAtTheOutermostEnd) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats a(10, 1), b(10, 2);
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoAllReduce(a.data(), a.data(), 10, setoFloat32, setoSum, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(a, Floats(10, 1));
    EXPECT_EQ(setoAllReduce(b.data(), b.data(), 10, setoFloat32, setoMax, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(a, Floats(10, 2));
    EXPECT_EQ(b, Floats(10, 2));
  }));
}

TEST_P(Groups, CopyTheArgumentsOfACall) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats sum(4, 3), in(3, static_cast<float>(own.rank)), all(3, -1);
    setoRedOp_t twice{};
    float two = 2;
    EXPECT_EQ(setoRedOpCreatePreMulSum(&twice, &two, setoFloat32, setoScalarHostImmediate, own.comm), setoSuccess);
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoAllReduce(sum.data(), sum.data(), 4, setoFloat32, twice, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoRedOpDestroy(twice, own.comm), setoSuccess);
    {
      std::vector<std::size_t> counts = {1, 2};
      EXPECT_EQ(
          setoAllGatherv(in.data(), own.rank == 0 ? 1 : 2, all.data(), counts.data(), nullptr, setoFloat32, own.comm, nullptr),
          setoSuccess);
      counts = {77, 77};
    }
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(sum, Floats(4, 12));
    EXPECT_EQ(all, (Floats{0, 1, 1}));
  }));
}

TEST_P(Groups, ReturnTheFirstFailureAndRunTheOtherCalls) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats data(4, 1);
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoSend(data.data(), 4, setoFloat32, 9, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoAllReduce(data.data(), data.data(), 4, setoFloat32, setoSum, own.comm, nullptr), setoSuccess);
    EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("peer: 9"));
    EXPECT_EQ(data, Floats(4, 2));
  }));
}

TEST_P(Groups, MatchMessagesToTheSameRankInOrder) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats a(3, 1), b(2, 2), c(3), d(2);
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoRecv(c.data(), 3, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoSend(a.data(), 3, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoSend(b.data(), 2, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoRecv(d.data(), 2, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(c, a);
    EXPECT_EQ(d, b);

    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoSend(a.data(), 3, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoRecv(c.data(), 2, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("sends itself 3 float and receives 2 float"));

    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoSend(a.data(), 3, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("to itself"));
  }));
}

TEST(Group, EndedWithoutAStartIsNamed) {
  EXPECT_TRUE(run_alone([] { EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("has started no group")); }));
}

// One thread drives all ranks; each rank has its own context.
TEST(Group, OfOneThreadDrivesAllRanks) {
  EXPECT_TRUE(run_alone([] {
    constexpr int kRanks = 4;
    std::vector<setoComm_t> comms(kRanks);
    ASSERT_EQ(outcome(setoCommInitAll(comms.data(), kRanks, nullptr)), kGood);
    for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{300'000}}) {
      std::vector<Floats> data(kRanks, Floats(count, 1)), in(kRanks, Floats(count, 0));
      ASSERT_EQ(setoGroupStart(), setoSuccess);
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        EXPECT_EQ(setoAllReduce(data[r].data(), data[r].data(), count, setoFloat32, setoSum, comms[r], nullptr), setoSuccess);
        EXPECT_EQ(setoSend(data[r].data(), 0, setoFloat32, (rank + 1) % kRanks, comms[r], nullptr), setoSuccess);
        EXPECT_EQ(setoRecv(in[r].data(), 0, setoFloat32, (rank + kRanks - 1) % kRanks, comms[r], nullptr), setoSuccess);
      }
      ASSERT_EQ(outcome(setoGroupEnd()), kGood);
      for (const Floats& result : data) EXPECT_EQ(result, Floats(count, kRanks));
    }
    for (setoComm_t comm : comms) EXPECT_EQ(outcome(setoCommDestroy(comm)), kGood);
  }));
}

TEST(Group, WithCallsOfADestroyedCommunicatorIsNamed) {
  EXPECT_TRUE(run_alone([] {
    setoComm_t comm = nullptr;
    ASSERT_EQ(outcome(setoCommInitAll(&comm, 1, nullptr)), kGood);
    Floats data(4, 1);
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoAllReduce(data.data(), data.data(), 4, setoFloat32, setoSum, comm, nullptr), setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("ended before them"));
  }));
}

TEST(Group, WithInitsAndOtherCallsIsNamed) {
  EXPECT_TRUE(run_alone([] {
    setoComm_t comm = nullptr, other = nullptr;
    ASSERT_EQ(outcome(setoCommInitAll(&comm, 1, nullptr)), kGood);
    setoUniqueId id;
    ASSERT_EQ(setoGetUniqueId(&id), setoSuccess);
    Floats data(4, 1);
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoAllReduce(data.data(), data.data(), 4, setoFloat32, setoSum, comm, nullptr), setoSuccess);
    EXPECT_EQ(setoCommInitRank(&other, 1, id, 0), setoSuccess);
    EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("use a group for each"));
    EXPECT_EQ(other, nullptr);
    EXPECT_EQ(outcome(setoAllReduce(data.data(), data.data(), 4, setoFloat32, setoSum, comm, nullptr)), kGood);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  }));
}

// Several communicators, each used by its own thread at the same time.
TEST(Group, OfSeveralThreadsAndCommunicatorsAreIndependent) {
  EXPECT_TRUE(run_alone([] {
    constexpr int kRanks = 2, kJobs = 3;
    std::vector<std::thread> threads;
    std::vector<std::vector<setoComm_t>> comms(kJobs, std::vector<setoComm_t>(kRanks));
    for (auto& job : comms) ASSERT_EQ(outcome(setoCommInitAll(job.data(), kRanks, nullptr)), kGood);
    for (auto& job : comms)
      for (int rank = 0; rank < kRanks; ++rank)
        threads.emplace_back([&job, rank] {
          setoComm_t comm = job[static_cast<std::size_t>(rank)];
          for (int round = 0; round < 50; ++round) {
            Floats data(1000, 1), in(10);
            ASSERT_EQ(setoGroupStart(), setoSuccess);
            ASSERT_EQ(setoAllReduce(data.data(), data.data(), 1000, setoFloat32, setoSum, comm, nullptr), setoSuccess);
            ASSERT_EQ(setoSend(data.data(), 0, setoFloat32, 1 - rank, comm, nullptr), setoSuccess);
            ASSERT_EQ(setoRecv(in.data(), 0, setoFloat32, 1 - rank, comm, nullptr), setoSuccess);
            ASSERT_EQ(outcome(setoGroupEnd()), kGood);
            ASSERT_EQ(data, Floats(1000, kRanks));
          }
        });
    for (std::thread& thread : threads) thread.join();
    for (auto& job : comms)
      for (setoComm_t comm : job) EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  }));
}

}  // namespace
}  // namespace seto::testing
