// Host streams through the C API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/api_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;
constexpr const char* kGood = "setoSuccess";

class Streams : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, Streams, ::testing::Values(Ranks::as_threads, Ranks::as_processes),
                         [](const auto& tested) { return tested.param == Ranks::as_threads ? "Threads" : "Processes"; });

std::uint64_t position_of(setoStream_t stream) {
  std::uint64_t position = 0;
  EXPECT_EQ(setoStreamPosition(stream, &position), setoSuccess);
  return position;
}

TEST_P(Streams, RunOperationsInOrder) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(outcome(setoStreamCreate(&stream)), kGood);
    for (const std::size_t count : {std::size_t{2}, std::size_t{3000}, std::size_t{200'000}}) {
      Floats data(count, 1);
      for (int i = 0; i < 5; ++i)
        EXPECT_EQ(outcome(setoAllReduce(data.data(), data.data(), count, setoFloat32, setoSum, own.comm, stream)), kGood);
      EXPECT_EQ(outcome(setoStreamWait(stream, position_of(stream), 0)), kGood);
      EXPECT_EQ(data, Floats(count, 32));
    }
    EXPECT_EQ(position_of(stream), 15U);
    EXPECT_EQ(outcome(setoStreamDestroy(stream)), kGood);
  }));
}

// More shapes than a communicator keeps bound, while some of them are always under way.
TEST_P(Streams, RunMoreShapesThanAreKept) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    constexpr std::size_t kShapes = 700;
    constexpr std::size_t kUnderWay = 20;
    setoStream_t stream = nullptr;
    EXPECT_EQ(outcome(setoStreamCreate(&stream)), kGood);
    std::vector<Floats> all;
    for (std::size_t count = 1; count <= kShapes; ++count) {
      Floats& data = all.emplace_back(count, 1);
      EXPECT_EQ(outcome(setoAllReduce(data.data(), data.data(), count, setoFloat32, setoSum, own.comm, stream)), kGood);
      if (count > kUnderWay) {
        EXPECT_EQ(outcome(setoStreamWait(stream, position_of(stream) - kUnderWay, 0)), kGood);
      }
    }
    EXPECT_EQ(outcome(setoStreamWait(stream, position_of(stream), 0)), kGood);
    for (const Floats& data : all) EXPECT_EQ(data, Floats(data.size(), 2));
    EXPECT_EQ(outcome(setoStreamDestroy(stream)), kGood);
  }));
}

// Also if the caller announced a wait (waitsNext) and waited only for the first calls.
TEST_P(Streams, ContinueWithoutAWaiter) {
  for (const setoSwitch_t waits_next : {setoOff, setoOn}) {
    EXPECT_TRUE(run_ranks(GetParam(), 2, [waits_next](ApiRank& own) {
      setoStream_t stream = nullptr;
      EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
      setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
      config.waitsNext = waits_next;
      for (int i = 0; i < 20; ++i) {
        Floats data(1000, 1);
        std::atomic<bool> called{false};
        EXPECT_EQ(setoAllReduceConfig(data.data(), data.data(), 1000, setoFloat32, setoSum, own.comm, stream, &config),
                  setoSuccess);
        EXPECT_EQ(setoLaunchHostFunction(
                      stream, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }, &called),
                  setoSuccess);
        if (i < 10) {
          EXPECT_EQ(setoStreamWait(stream, position_of(stream), 0), setoSuccess);
        }
        while (!called.load()) std::this_thread::yield();
        EXPECT_EQ(data, Floats(1000, 2));
      }
      EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
    }));
  }
}

TEST_P(Streams, RejectAnInvalidWaitsNext) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    const int none = 3;
    static_assert(sizeof(none) == sizeof(config.waitsNext));
    std::memcpy(&config.waitsNext, &none, sizeof(none));
    float data = 1;
    EXPECT_THAT(outcome(setoAllReduceConfig(&data, &data, 1, setoFloat32, setoSum, own.comm, nullptr, &config)),
                HasSubstr("waitsNext: 3 is neither setoOn nor setoOff"));
  }));
}

TEST_P(Streams, PollUntilTheEnd) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    Floats data(50'000, 1);
    EXPECT_EQ(setoAllReduce(data.data(), data.data(), data.size(), setoFloat32, setoSum, own.comm, stream), setoSuccess);
    setoResult_t result = setoInProgress;
    while ((result = setoStreamPoll(stream, 1)) == setoInProgress) std::this_thread::yield();
    EXPECT_EQ(outcome(result), kGood);
    EXPECT_EQ(data, Floats(50'000, 2));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST_P(Streams, LetTwoRanksSendToEachOther) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t sends = nullptr, receives = nullptr;
    EXPECT_EQ(setoStreamCreate(&sends), setoSuccess);
    EXPECT_EQ(setoStreamCreate(&receives), setoSuccess);
    const Floats out(500'000, static_cast<float>(own.rank));
    Floats in(500'000, -1);
    EXPECT_EQ(setoSend(out.data(), out.size(), setoFloat32, 1 - own.rank, own.comm, sends), setoSuccess);
    EXPECT_EQ(setoRecv(in.data(), in.size(), setoFloat32, 1 - own.rank, own.comm, receives), setoSuccess);
    EXPECT_EQ(outcome(setoStreamWait(sends, 1, 0)), kGood);
    EXPECT_EQ(outcome(setoStreamWait(receives, 1, 0)), kGood);
    EXPECT_EQ(in, Floats(500'000, static_cast<float>(1 - own.rank)));
    EXPECT_EQ(setoStreamDestroy(sends), setoSuccess);
    EXPECT_EQ(setoStreamDestroy(receives), setoSuccess);
  }));
}

TEST_P(Streams, WaitForEachOther) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t first = nullptr, second = nullptr;
    EXPECT_EQ(setoStreamCreate(&first), setoSuccess);
    EXPECT_EQ(setoStreamCreate(&second), setoSuccess);
    Floats data(20'000, 1);
    for (int i = 0; i < 6; ++i) {
      const setoStream_t one = i % 2 == 0 ? first : second, other = i % 2 == 0 ? second : first;
      EXPECT_EQ(setoStreamWaitFor(one, other, position_of(other)), setoSuccess);
      EXPECT_EQ(setoAllReduce(data.data(), data.data(), data.size(), setoFloat32, setoSum, own.comm, one), setoSuccess);
    }
    EXPECT_EQ(outcome(setoStreamWait(second, position_of(second), 0)), kGood);
    EXPECT_EQ(data, Floats(20'000, 64));
    EXPECT_EQ(setoStreamDestroy(first), setoSuccess);
    EXPECT_EQ(setoStreamDestroy(second), setoSuccess);
  }));
}

TEST_P(Streams, ContinueAfterATimeout) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    Floats data(10, 1), token(1);
    if (own.rank == 0) {
      EXPECT_EQ(setoAllReduce(data.data(), data.data(), 10, setoFloat32, setoSum, own.comm, stream), setoSuccess);
      EXPECT_EQ(setoStreamWait(stream, 1, 20), setoTimeout);
      EXPECT_EQ(setoStreamPoll(stream, 1), setoInProgress);
      EXPECT_EQ(setoSend(token.data(), 1, setoFloat32, 1, own.comm, nullptr), setoSuccess);
    } else {
      EXPECT_EQ(setoRecv(token.data(), 1, setoFloat32, 0, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(setoAllReduce(data.data(), data.data(), 10, setoFloat32, setoSum, own.comm, stream), setoSuccess);
    }
    EXPECT_EQ(outcome(setoStreamWait(stream, 1, 0)), kGood);
    EXPECT_EQ(data, Floats(10, 2));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST_P(Streams, ReturnTheFirstFailureUpToAPosition) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    Floats data(10, 1);
    const auto reduce = [&](void* buffer) { return setoAllReduce(buffer, buffer, 10, setoFloat32, setoSum, own.comm, stream); };
    EXPECT_EQ(reduce(data.data()), setoSuccess);
    EXPECT_EQ(reduce(nullptr), setoSuccess);  // rejected on every rank, with its operation number
    EXPECT_EQ(reduce(data.data()), setoSuccess);
    EXPECT_EQ(outcome(setoStreamWait(stream, 1, 0)), kGood);
    EXPECT_THAT(outcome(setoStreamWait(stream, 3, 0)), HasSubstr("sendbuff"));
    EXPECT_EQ(outcome(setoStreamPoll(stream, 1)), kGood);
    EXPECT_EQ(data, Floats(10, 4));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST_P(Streams, WorkInGroups) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    Floats queued(1000, 1), blocking(1000, 1), in(100'000), out(100'000, 3);
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoAllReduce(queued.data(), queued.data(), 1000, setoFloat32, setoSum, own.comm, stream), setoSuccess);
    EXPECT_EQ(setoSend(out.data(), out.size(), setoFloat32, 1 - own.rank, own.comm, stream), setoSuccess);
    EXPECT_EQ(setoRecv(in.data(), in.size(), setoFloat32, 1 - own.rank, own.comm, stream), setoSuccess);
    EXPECT_EQ(setoAllReduce(blocking.data(), blocking.data(), 1000, setoFloat32, setoSum, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(blocking, Floats(1000, 2));
    EXPECT_EQ(position_of(stream), 1U);
    EXPECT_EQ(outcome(setoStreamWait(stream, 1, 0)), kGood);
    EXPECT_EQ(queued, Floats(1000, 2));
    EXPECT_EQ(in, out);
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST_P(Streams, ReturnTheFirstFailureOfAGroupAndRunTheOtherCalls) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    Floats before(10, 1), after(10, 1);
    const auto reduce = [&](void* buffer) { return setoAllReduce(buffer, buffer, 10, setoFloat32, setoSum, own.comm, stream); };
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(reduce(before.data()), setoSuccess);
    EXPECT_EQ(reduce(nullptr), setoSuccess);
    EXPECT_EQ(reduce(after.data()), setoSuccess);
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_THAT(outcome(setoStreamWait(stream, 1, 0)), HasSubstr("sendbuff"));
    EXPECT_EQ(before, Floats(10, 2));
    EXPECT_EQ(after, Floats(10, 2));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST_P(Streams, EndWithTheirCommunicator) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    Floats data(300'000, 1);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(setoAllReduce(data.data(), data.data(), data.size(), setoFloat32, setoSum, own.comm, stream), setoSuccess);
    EXPECT_EQ(outcome(setoCommDestroy(own.comm)), kGood);  // waits
    own.comm = nullptr;
    EXPECT_EQ(outcome(setoStreamPoll(stream, 4)), kGood);
    EXPECT_EQ(data, Floats(300'000, 16));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

// Waiters of one context, on streams and in blocking calls, while the background thread works too.
TEST_P(Streams, AreWaitedForByManyThreads) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    for (int round = 0; round < 30; ++round) {
      Floats data(5000, 1);
      const std::uint64_t before = position_of(stream);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(setoAllReduce(data.data(), data.data(), 5000, setoFloat32, setoSum, own.comm, stream), setoSuccess);
      std::vector<std::thread> waiters;
      for (std::uint64_t i = 1; i <= 3; ++i)
        waiters.emplace_back([&, i] { EXPECT_EQ(outcome(setoStreamWait(stream, before + i, 0)), kGood); });
      Floats more(10, 1);
      EXPECT_EQ(outcome(setoAllReduce(more.data(), more.data(), 10, setoFloat32, setoSum, own.comm, nullptr)), kGood);
      for (std::thread& waiter : waiters) waiter.join();
      EXPECT_EQ(data, Floats(5000, 8));
      EXPECT_EQ(more, Floats(10, 2));
    }
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

// Without a group the calls would be queued one behind the other and wait for each other.
TEST(Stream, CarriesAllRanksOfOneThreadInAGroup) {
  EXPECT_TRUE(run_alone([] {
    setenv("SETO_OPERATION_TIMEOUT_MS", "20000", 1);
    constexpr int kRanks = 4;
    std::vector<setoComm_t> comms(kRanks);
    ASSERT_EQ(outcome(setoCommInitAll(comms.data(), kRanks, nullptr)), kGood);
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    const std::size_t counts[] = {1, 5000, 300'000};
    std::vector<Floats> sums(kRanks), tops(kRanks), in(kRanks), out(kRanks);
    for (const std::size_t count : counts) {
      const std::uint64_t before = position_of(stream);
      ASSERT_EQ(setoGroupStart(), setoSuccess);
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        sums[r].assign(count, 1);
        in[r].assign(count, -1);
        out[r].assign(count, static_cast<float>(rank));
        tops[r].assign(count, static_cast<float>(rank));
        EXPECT_EQ(setoAllReduce(sums[r].data(), sums[r].data(), count, setoFloat32, setoSum, comms[r], stream), setoSuccess);
        EXPECT_EQ(setoAllReduce(tops[r].data(), tops[r].data(), count, setoFloat32, setoMax, comms[r], stream), setoSuccess);
        EXPECT_EQ(setoSend(out[r].data(), count, setoFloat32, (rank + 1) % kRanks, comms[r], stream), setoSuccess);
        EXPECT_EQ(setoRecv(in[r].data(), count, setoFloat32, (rank + kRanks - 1) % kRanks, comms[r], stream), setoSuccess);
      }
      ASSERT_EQ(outcome(setoGroupEnd()), kGood);
      EXPECT_EQ(position_of(stream), before + 1);
      bool called = false;
      EXPECT_EQ(setoLaunchHostFunction(
                    stream, [](void* flag) { *static_cast<bool*>(flag) = true; }, &called),
                setoSuccess);
      ASSERT_EQ(outcome(setoStreamWait(stream, before + 1, 0)), kGood);
      for (std::size_t r = 0; r < kRanks; ++r) {
        EXPECT_EQ(sums[r], Floats(count, kRanks));
        EXPECT_EQ(tops[r], Floats(count, kRanks - 1));
        EXPECT_EQ(in[r], Floats(count, static_cast<float>((r + kRanks - 1) % kRanks)));
      }
      ASSERT_EQ(outcome(setoStreamWait(stream, before + 2, 0)), kGood);
      EXPECT_TRUE(called);
    }
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
    for (setoComm_t comm : comms) EXPECT_EQ(outcome(setoCommDestroy(comm)), kGood);
  }));
}

TEST(Stream, TimesOutForAMissingRankAndContinues) {
  EXPECT_TRUE(run_alone([] {
    std::vector<setoComm_t> comms(3);
    ASSERT_EQ(outcome(setoCommInitAll(comms.data(), 3, nullptr)), kGood);
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    std::vector<Floats> data(3, Floats(100, 1));
    const auto reduce = [&](std::size_t rank, setoStream_t on) {
      return setoAllReduce(data[rank].data(), data[rank].data(), 100, setoFloat32, setoSum, comms[rank], on);
    };
    ASSERT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(reduce(0, stream), setoSuccess);
    EXPECT_EQ(reduce(1, stream), setoSuccess);
    ASSERT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(setoStreamWait(stream, 1, 20), setoTimeout);
    EXPECT_EQ(setoStreamPoll(stream, 1), setoInProgress);
    EXPECT_EQ(outcome(reduce(2, nullptr)), kGood);
    EXPECT_EQ(outcome(setoStreamWait(stream, 1, 0)), kGood);
    for (const Floats& result : data) EXPECT_EQ(result, Floats(100, 3));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
    for (setoComm_t comm : comms) EXPECT_EQ(outcome(setoCommDestroy(comm)), kGood);
  }));
}

TEST(Stream, FunctionsRunInOrder) {
  EXPECT_TRUE(run_alone([] {
    setoStream_t stream = nullptr;
    ASSERT_EQ(setoStreamCreate(&stream), setoSuccess);
    static std::vector<int> order;
    static int numbers[100];
    for (int i = 0; i < 100; ++i) {
      numbers[i] = i;
      EXPECT_EQ(setoLaunchHostFunction(
                    stream, [](void* number) { order.push_back(*static_cast<int*>(number)); }, &numbers[i]),
                setoSuccess);
    }
    EXPECT_EQ(outcome(setoStreamWait(stream, 100, 20'000)), kGood);
    EXPECT_EQ(order.size(), 100U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

// After a rejected call the next calls are right, and are reported as such.
TEST_P(Streams, ReportTheOutcomeOfEachItem) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    setoStream_t stream = nullptr;
    EXPECT_EQ(setoStreamCreate(&stream), setoSuccess);
    struct Told {
      setoResult_t result = setoNumResults;
      std::string text;
    };
    std::vector<Told> told(3);
    Floats data(1000, 1);
    for (std::size_t call = 0; call < told.size(); ++call) {
      const setoRedOp_t op = call == 1 ? static_cast<setoRedOp_t>(77) : setoSum;
      EXPECT_EQ(setoAllReduce(data.data(), data.data(), data.size(), setoFloat32, op, own.comm, stream), setoSuccess);
      const setoOutcomeFunction_t tell = [](setoResult_t result, const char* text, void* where) {
        *static_cast<Told*>(where) = {result, text};
      };
      EXPECT_EQ(setoLaunchOutcomeFunction(stream, tell, &told[call]), setoSuccess);
    }
    EXPECT_EQ(setoStreamWait(stream, 6, 0), setoInvalidArgument) << "the first failure of all";
    EXPECT_EQ(told[0].result, setoSuccess) << told[0].text;
    EXPECT_EQ(told[0].text, "");
    EXPECT_EQ(told[1].result, setoInvalidArgument);
    EXPECT_THAT(told[1].text, HasSubstr("op: 77"));
    EXPECT_EQ(told[2].result, setoSuccess) << told[2].text;
    EXPECT_EQ(data, Floats(1000, 4));
    EXPECT_EQ(setoLaunchOutcomeFunction(stream, nullptr, nullptr), setoInvalidArgument);
    EXPECT_EQ(setoStreamDestroy(stream), setoSuccess);
  }));
}

TEST(Stream, HandlesOfDestroyedStreamsAreNamed) {
  EXPECT_TRUE(run_alone([] {
    setoStream_t first = nullptr, second = nullptr;
    std::uint64_t position = 0;
    ASSERT_EQ(setoStreamCreate(&first), setoSuccess);
    ASSERT_EQ(setoStreamDestroy(first), setoSuccess);
    ASSERT_EQ(setoStreamCreate(&second), setoSuccess);
    EXPECT_NE(first, second);
    EXPECT_THAT(outcome(setoStreamPosition(first, &position)), HasSubstr("was it destroyed?"));
    EXPECT_THAT(outcome(setoStreamDestroy(first)), HasSubstr("was it destroyed?"));
    EXPECT_THAT(outcome(setoStreamWait(second, 1, 0)), HasSubstr("position: 1"));
    EXPECT_THAT(outcome(setoStreamPoll(nullptr, 0)), HasSubstr("stream"));
    EXPECT_THAT(outcome(setoStreamWaitFor(second, first, 0)), HasSubstr("was it destroyed?"));
    EXPECT_THAT(outcome(setoLaunchHostFunction(second, nullptr, nullptr)), HasSubstr("function"));
    EXPECT_EQ(setoStreamDestroy(second), setoSuccess);
  }));
}

}  // namespace
}  // namespace seto::testing
