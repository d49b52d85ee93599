// Sends and receives through the C API, between ranks that are threads and between processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/api_ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

class PointToPoint : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(, PointToPoint, ::testing::Values(Ranks::as_threads, Ranks::as_processes),
                         [](const auto& tested) { return tested.param == Ranks::as_threads ? "Threads" : "Processes"; });

constexpr const char* kGood = "setoSuccess";

float value(int from, int to, std::size_t message, std::size_t index) {
  return static_cast<float>((from * 31 + to * 7 + static_cast<int>(message) * 5 + static_cast<int>(index % 1009)) % 251);
}

Floats message_of(int from, int to, std::size_t message, std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(from, to, message, i);
  return values;
}

// Sizes that fit a line of 32 bytes, one slot, several slots, and several turns of the ring.
const std::size_t kCounts[] = {0, 1, 8, 9, 1000, 1024, 16'384, 16'385, 100'000, 1'000'003};

TEST_P(PointToPoint, CarriesEverySizeInBothDirections) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    for (int round = 0; round < 3; ++round)
      for (std::size_t i = 0; i < std::size(kCounts); ++i) {
        const std::size_t count = kCounts[i];
        const int other = 1 - own.rank;
        const Floats out = message_of(own.rank, other, i, count);
        Floats in(count, -1);
        const auto send = [&] { return outcome(setoSend(out.data(), count, setoFloat32, other, own.comm, nullptr)); };
        const auto receive = [&] { return outcome(setoRecv(in.data(), count, setoFloat32, other, own.comm, nullptr)); };
        EXPECT_EQ(own.rank == 0 ? send() : receive(), kGood);
        EXPECT_EQ(own.rank == 0 ? receive() : send(), kGood);
        EXPECT_EQ(in, message_of(other, own.rank, i, count)) << count;
      }
  }));
}

TEST_P(PointToPoint, ShortSendsDoNotWaitForTheirReceiver) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    // Both send first, several times: messages that fit the library's slots wait for no receiver.
    for (std::size_t i = 0; i < 3; ++i) {
      const Floats out = message_of(own.rank, 1 - own.rank, i, 1000);
      EXPECT_EQ(outcome(setoSend(out.data(), out.size(), setoFloat32, 1 - own.rank, own.comm, nullptr)), kGood);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      Floats in(1000);
      EXPECT_EQ(outcome(setoRecv(in.data(), in.size(), setoFloat32, 1 - own.rank, own.comm, nullptr)), kGood);
      EXPECT_EQ(in, message_of(1 - own.rank, own.rank, i, 1000));
    }
  }));
}

TEST_P(PointToPoint, SendersMayLeaveBeforeTheirMessagesAreRead) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    const Floats out = message_of(0, 1, 4, 5000);
    if (own.rank == 0) {
      EXPECT_EQ(outcome(setoSend(out.data(), out.size(), setoFloat32, 1, own.comm, nullptr)), kGood);
      EXPECT_EQ(outcome(setoSend(out.data(), 3, setoFloat32, 1, own.comm, nullptr)), kGood);
      return;
    }
    Floats in(5000);
    EXPECT_EQ(outcome(setoRecv(in.data(), in.size(), setoFloat32, 0, own.comm, nullptr)), kGood);
    EXPECT_EQ(in, out);
    EXPECT_EQ(outcome(setoRecv(in.data(), 3, setoFloat32, 0, own.comm, nullptr)), kGood);
    EXPECT_EQ(outcome(setoRecv(in.data(), 3, setoFloat32, 0, own.comm, nullptr)).find("setoSuccess"), std::string::npos);
  }));
}

TEST_P(PointToPoint, NamesACountThatDiffers) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats data(600'000, 1);
    const std::string result = own.rank == 0 ? outcome(setoSend(data.data(), 600'000, setoFloat32, 1, own.comm, nullptr))
                                             : outcome(setoRecv(data.data(), 599'999, setoFloat32, 0, own.comm, nullptr));
    EXPECT_THAT(result, HasSubstr("600000"));
    EXPECT_THAT(result, HasSubstr("599999"));
  }));
}

TEST_P(PointToPoint, NamesATypeThatDiffersAlsoForAShortMessage) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats data(4, 1);
    if (own.rank == 0) {
      EXPECT_EQ(outcome(setoSend(data.data(), 4, setoFloat32, 1, own.comm, nullptr)), kGood);
      Floats back(4);
      EXPECT_NE(outcome(setoRecv(back.data(), 4, setoFloat32, 1, own.comm, nullptr)), kGood);
    } else {
      const std::string result = outcome(setoRecv(data.data(), 4, setoInt32, 0, own.comm, nullptr));
      EXPECT_THAT(result, HasSubstr("receive of 4 int32 from rank 0"));
      EXPECT_THAT(result, HasSubstr("send of 4 float to rank 1"));
      EXPECT_EQ(data, Floats(4, 1));
    }
  }));
}

setoCallConfig_t tagged(std::uint32_t tag) {
  setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
  config.messageTag = tag;
  return config;
}

// Data that was meant for another receive is never delivered.
TEST_P(PointToPoint, NamesATagThatDiffers) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    const setoCallConfig_t seven = tagged(7), eight = tagged(8);
    Floats data(4, static_cast<float>(own.rank));
    EXPECT_EQ(outcome(setoGroupStart()), kGood);
    for (const auto* const config : {&seven, &eight}) {
      EXPECT_EQ(outcome(own.rank == 0 ? setoSendConfig(data.data(), 2, setoFloat32, 1, own.comm, nullptr, config)
                                      : setoRecvConfig(data.data() + (config == &eight ? 2 : 0), 2, setoFloat32, 0, own.comm,
                                                       nullptr, config)),
                kGood);
    }
    EXPECT_EQ(outcome(setoGroupEnd()), kGood);
    EXPECT_EQ(data, Floats(4, 0));
    EXPECT_EQ(outcome(setoGroupStart()), kGood);
    Floats from(2, 3);
    EXPECT_EQ(outcome(setoSendConfig(from.data(), 2, setoFloat32, own.rank, own.comm, nullptr, &seven)), kGood);
    EXPECT_EQ(outcome(setoRecvConfig(data.data(), 2, setoFloat32, own.rank, own.comm, nullptr, &eight)), kGood);
    EXPECT_THAT(outcome(setoGroupEnd()), HasSubstr("sends itself a message with tag 7 and receives one with tag 8"));
    EXPECT_EQ(data, Floats(4, 0));
    data = Floats(4, 1);
    if (own.rank == 0) {
      EXPECT_EQ(outcome(setoSendConfig(data.data(), 4, setoFloat32, 1, own.comm, nullptr, &seven)), kGood);
      EXPECT_NE(outcome(setoRecv(data.data(), 4, setoFloat32, 1, own.comm, nullptr)), kGood);
    } else {
      data = Floats(4, 5);
      const std::string result = outcome(setoRecvConfig(data.data(), 4, setoFloat32, 0, own.comm, nullptr, &eight));
      EXPECT_THAT(result, HasSubstr("receive of 4 float from rank 0, tag 8"));
      EXPECT_THAT(result, HasSubstr("send of 4 float to rank 1, tag 7"));
      EXPECT_EQ(data, Floats(4, 5));
    }
  }));
}

TEST_P(PointToPoint, ReportsARejectedCallToThePeerAndContinues) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats data(200'000, 1);
    const std::size_t count = data.size();
    if (own.rank == 0) {
      EXPECT_THAT(outcome(setoSend(nullptr, count, setoFloat32, 1, own.comm, nullptr)), HasSubstr("sendbuff"));
      EXPECT_THAT(outcome(setoSend(data.data(), count, setoFloat32, 1, own.comm, nullptr)), HasSubstr("rank 1 rejected"));
      EXPECT_EQ(outcome(setoSend(data.data(), count, setoFloat32, 1, own.comm, nullptr)), kGood);
    } else {
      EXPECT_THAT(outcome(setoRecv(data.data(), count, setoFloat32, 0, own.comm, nullptr)), HasSubstr("rank 0 rejected"));
      EXPECT_THAT(outcome(setoRecv(nullptr, count, setoFloat32, 0, own.comm, nullptr)), HasSubstr("recvbuff"));
      EXPECT_EQ(outcome(setoRecv(data.data(), count, setoFloat32, 0, own.comm, nullptr)), kGood);
    }
  }));
}

// Whether rank 0, which times out, names the send of rank 1. Rank 1 may not have called before a short deadline.
bool names_the_facing_send(Ranks kind, std::uint32_t deadline_ms) {
  const Shared<std::atomic<bool>> named;
  EXPECT_TRUE(run_ranks(kind, 2, [&](ApiRank& own) {
    const Floats data(1'000'000, 1);
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    config.deadlineMs = own.rank == 0 ? deadline_ms : 60'000;
    const setoResult_t result = setoSendConfig(data.data(), data.size(), setoFloat32, 1 - own.rank, own.comm, nullptr, &config);
    EXPECT_EQ(result, own.rank == 0 ? setoTimeout : setoRemoteError);
    const std::string text = setoGetLastError(nullptr);
    if (own.rank == 0) named->store(text.find("faces a send of that rank") != std::string::npos);
  }));
  return named->load();
}

TEST_P(PointToPoint, NamesSendsThatFaceEachOther) {
  bool named = false;
  for (const std::uint32_t deadline_ms : {100U, 1'000U, 10'000U}) named = named || names_the_facing_send(GetParam(), deadline_ms);
  EXPECT_TRUE(named);
}

TEST_P(PointToPoint, NamesAMissingSender) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    if (own.rank == 1) {
      Floats wait(1);
      EXPECT_NE(setoRecv(wait.data(), 1, setoFloat32, 0, own.comm, nullptr), setoSuccess);  // until rank 0 has timed out
      return;
    }
    Floats data(10);
    setoCallConfig_t config = SETO_CALL_CONFIG_INITIALIZER;
    config.deadlineMs = 50;
    EXPECT_EQ(setoRecvConfig(data.data(), 10, setoFloat32, 1, own.comm, nullptr, &config), setoTimeout);
    EXPECT_THAT(setoGetLastError(nullptr), HasSubstr("receive of 10 float from rank 1 was not sent"));
  }));
}

TEST_P(PointToPoint, RejectsInvalidArguments) {
  EXPECT_TRUE(run_ranks(GetParam(), 2, [](ApiRank& own) {
    Floats data(4);
    EXPECT_THAT(outcome(setoSend(data.data(), 4, setoFloat32, 2, own.comm, nullptr)), HasSubstr("peer: 2"));
    EXPECT_THAT(outcome(setoRecv(data.data(), 4, setoFloat32, -1, own.comm, nullptr)), HasSubstr("peer: -1"));
    EXPECT_THAT(outcome(setoSend(data.data(), 4, setoFloat32, own.rank, own.comm, nullptr)), HasSubstr("one group"));
    EXPECT_THAT(outcome(setoSend(data.data(), 4, setoFloat32, 1 - own.rank, nullptr, nullptr)), HasSubstr("comm"));
    // None of these calls has changed the order of operations.
    EXPECT_EQ(outcome(setoAllReduce(data.data(), data.data(), 4, setoFloat32, setoSum, own.comm, nullptr)), kGood);
  }));
}

TEST_P(PointToPoint, WorksBesideCollectives) {
  EXPECT_TRUE(run_ranks(GetParam(), 3, [](ApiRank& own) {
    const int next = (own.rank + 1) % 3;
    const int last = (own.rank + 2) % 3;
    for (int round = 0; round < 20; ++round) {
      const Floats out = message_of(own.rank, next, 1, 20'000);
      Floats in(20'000), sum(1000, 1);
      EXPECT_EQ(setoGroupStart(), setoSuccess);
      EXPECT_EQ(setoSend(out.data(), out.size(), setoFloat32, next, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(setoAllReduce(sum.data(), sum.data(), sum.size(), setoFloat32, setoSum, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(setoRecv(in.data(), in.size(), setoFloat32, last, own.comm, nullptr), setoSuccess);
      EXPECT_EQ(outcome(setoGroupEnd()), kGood);
      EXPECT_EQ(in, message_of(last, own.rank, 1, 20'000));
      EXPECT_EQ(sum, Floats(1000, 3));
    }
  }));
}

}  // namespace
}  // namespace seto::testing
