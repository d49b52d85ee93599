// Receives from the first rank that sends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/api_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<int>;

class ReceiveAny : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, ReceiveAny, ::testing::Values(Ranks::as_threads, Ranks::as_processes),
                         [](const auto& tested) { return tested.param == Ranks::as_threads ? "Threads" : "Processes"; });

constexpr const char* kGood = "setoSuccess";
constexpr std::size_t kCounts[] = {0, 1, 1000, 200'000};  // empty, in a line, in one slot, in many slots

std::string receive_any(ApiRank& own, Numbers& values, int& source, setoStream_t stream = nullptr) {
  return outcome(setoRecvAny(values.data(), values.size(), setoInt32, &source, own.comm, stream));
}

std::string send(ApiRank& own, const Numbers& values, int peer) {
  return outcome(setoSend(values.data(), values.size(), setoInt32, peer, own.comm, nullptr));
}

class Stream {
 public:
  Stream() { EXPECT_EQ(outcome(setoStreamCreate(&stream_)), kGood); }
  ~Stream() { EXPECT_EQ(outcome(setoStreamDestroy(stream_)), kGood); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] setoStream_t get() const { return stream_; }
  [[nodiscard]] std::string wait() const {
    std::uint64_t position = 0;
    EXPECT_EQ(outcome(setoStreamPosition(stream_, &position)), kGood);
    return outcome(setoStreamWait(stream_, position, 0));
  }

 private:
  setoStream_t stream_ = nullptr;
};

TEST_P(ReceiveAny, ReceivesOnlyMessagesWithItsTag) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    Numbers values(3, own.rank);
    const auto receive = [&](std::uint32_t tag, int& source) {
      config.messageTag = tag;
      return outcome(setoRecvAnyConfig(values.data(), 3, setoInt32, &source, own.comm, nullptr, &config));
    };
    for (int round = 0; round < 20; ++round) {
      config.messageTag = static_cast<std::uint32_t>(own.rank);
      if (own.rank != 0) {
        ASSERT_EQ(outcome(setoSendConfig(values.data(), 3, setoInt32, 0, own.comm, nullptr, &config)), kGood);
        continue;
      }
      for (const int rank : {1 + round % 2, 2 - round % 2}) {  // in the order of arrival
        int source = -1;
        ASSERT_EQ(receive(static_cast<std::uint32_t>(rank), source), kGood);
        EXPECT_EQ(source, rank);
        EXPECT_EQ(values, Numbers(3, rank));
      }
    }
    EXPECT_EQ(outcome(setoBarrier(own.comm, nullptr)), kGood);
    if (own.rank == 0) {
      config.deadlineMs = 50;
      int source = -1;
      EXPECT_THAT(receive(9, source), HasSubstr("a message from any rank with tag 9"));
    }
  }));
}

TEST_P(ReceiveAny, ReceivesEveryMessageOnce) {
  EXPECT_TRUE(run_ranks(GetParam(), 4, [](ApiRank& own) {
    constexpr int kRounds = 20;
    for (const std::size_t count : kCounts) {
      EXPECT_EQ(outcome(setoBarrier(own.comm, nullptr)), kGood);  // messages of different sizes must not mix
      if (own.rank != 0) {
        for (int round = 0; round < kRounds; ++round) ASSERT_EQ(send(own, Numbers(count, own.rank), 0), kGood);
        continue;
      }
      Numbers came(4, 0);
      for (int message = 0; message < 3 * kRounds; ++message) {
        Numbers values(count, -1);
        int source = -1;
        ASSERT_EQ(receive_any(own, values, source), kGood);
        ASSERT_GT(source, 0);
        ++came[static_cast<std::size_t>(source)];
        EXPECT_EQ(values, Numbers(count, source));
      }
      EXPECT_EQ(came, (Numbers{0, kRounds, kRounds, kRounds}));
    }
  }));
}

// A receive that names its rank gets the first message sent after its issue; receives issued before it get the earlier messages.
TEST_P(ReceiveAny, LeavesMessagesOfNamedReceivesToThem) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    if (own.rank == 1) {
      EXPECT_EQ(send(own, {7}, 0), kGood);
      EXPECT_EQ(send(own, {8}, 0), kGood);
    }
    if (own.rank == 0) {
      const Stream first, any;
      Numbers named(1), whichever(1);
      int source = -1;
      EXPECT_EQ(outcome(setoRecv(named.data(), 1, setoInt32, 1, own.comm, first.get())), kGood);
      EXPECT_EQ(receive_any(own, whichever, source, any.get()), kGood);
      EXPECT_EQ(any.wait(), kGood);
      EXPECT_EQ(first.wait(), kGood);
      EXPECT_EQ(named, Numbers{7});
      EXPECT_EQ(whichever, Numbers{8});
      EXPECT_EQ(source, 1);
    }
  }));
}

TEST_P(ReceiveAny, SeveralAtOnceShareTheMessages) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    if (own.rank != 0) {
      EXPECT_EQ(send(own, Numbers(5000, own.rank), 0), kGood);
      return;
    }
    const Stream streams[2];
    Numbers values[2] = {Numbers(5000), Numbers(5000)};
    int sources[2] = {-1, -1};
    for (int i = 0; i < 2; ++i) EXPECT_EQ(receive_any(own, values[i], sources[i], streams[i].get()), kGood);
    for (const Stream& stream : streams) EXPECT_EQ(stream.wait(), kGood);
    EXPECT_EQ(sources[0] + sources[1], 3);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(values[i], Numbers(5000, sources[i]));
  }));
}

// The messages of an all-to-all use the same channels as sends and receives.
TEST_P(ReceiveAny, ReceivesNoMessageOfAnAllToAll) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    const Stream stream;
    Numbers value(1);
    int source = -1;
    if (own.rank == 0) {
      EXPECT_EQ(receive_any(own, value, source, stream.get()), kGood);
    }
    const std::size_t counts[] = {4, 4, 4};
    for (int round = 0; round < 10; ++round) {
      const Numbers out(12, own.rank);
      Numbers in(12);
      EXPECT_EQ(outcome(setoAllToAllv(out.data(), counts, nullptr, in.data(), counts, nullptr, setoInt32, own.comm, nullptr)),
                kGood);
      EXPECT_EQ(in, (Numbers{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
    }
    if (own.rank == 2) {
      EXPECT_EQ(send(own, {5}, 0), kGood);
    }
    if (own.rank == 0) {
      EXPECT_EQ(stream.wait(), kGood);
      EXPECT_EQ(source, 2);
      EXPECT_EQ(value, Numbers{5});
    }
  }));
}

TEST_P(ReceiveAny, NamesACountThatDiffers) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Numbers values(3);
    int source = -1;
    const std::string heard = own.rank == 0 ? receive_any(own, values, source) : send(own, Numbers(200'000), 0);
    EXPECT_THAT(heard, HasSubstr("3 int32"));
    EXPECT_THAT(heard, HasSubstr("200000 int32"));
  }));
}

TEST_P(ReceiveAny, ReportsAtTheDeadlineThatNoMessageArrived) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Numbers value(1);
    if (own.rank == 1) {
      EXPECT_NE(outcome(setoRecv(value.data(), 1, setoInt32, 0, own.comm, nullptr)), kGood);  // until rank 0 has timed out
      return;
    }
    int source = -1;
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    config.deadlineMs = 100;
    EXPECT_THAT(outcome(setoRecvAnyConfig(value.data(), 1, setoInt32, &source, own.comm, nullptr, &config)),
                HasSubstr("a message from any rank has not arrived"));
    EXPECT_EQ(source, -1);
  }));
}

TEST_P(ReceiveAny, EndsWhenAllOtherRanksHaveLeft) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    if (own.rank == 1) {
      EXPECT_EQ(send(own, {3}, 0), kGood);
    }
    if (own.rank != 0) return;
    Numbers value(1);
    int source = -1;
    EXPECT_EQ(receive_any(own, value, source), kGood) << "it was sent before its rank left";
    EXPECT_EQ(source, 1);
    EXPECT_THAT(receive_any(own, value, source), HasSubstr("all other ranks have left"));
  }));
}

TEST_P(ReceiveAny, RejectsInvalidArguments) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Numbers value(1);
    int source = -1;
    EXPECT_THAT(outcome(setoRecvAny(value.data(), 1, setoInt32, nullptr, own.comm, nullptr)), HasSubstr("source"));
    EXPECT_THAT(outcome(setoRecvAny(nullptr, 1, setoInt32, &source, own.comm, nullptr)), HasSubstr("recvbuff"));
    EXPECT_EQ(outcome(setoGroupStart()), kGood);
    EXPECT_THAT(receive_any(own, value, source), HasSubstr("cannot be part of a group"));
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    // None of these calls has changed the order of operations.
    EXPECT_EQ(outcome(setoAllReduce(value.data(), value.data(), 1, setoInt32, setoSum, own.comm, nullptr)), kGood);
  }));
}

}  // namespace
}  // namespace seto::testing
