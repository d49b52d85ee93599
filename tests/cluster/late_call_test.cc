// A rank that begins a call after a peer has announced a failure: the call fails, although all the data that it needs is there.

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

// The kind of the ranks, and the transport.
class LateCall : public ::testing::TestWithParam<std::tuple<Kind, const char*>> {
 protected:
  void SetUp() override {
    if (const std::string transport = std::get<1>(GetParam()); transport != "auto")
      setenv("SETO_TRANSPORT", transport.c_str(), 1);
    setenv("SETO_OPERATION_TIMEOUT_MS", "300", 1);
  }
  void TearDown() override {
    unsetenv("SETO_TRANSPORT");
    unsetenv("SETO_OPERATION_TIMEOUT_MS");
  }

  [[nodiscard]] static Kind kind() { return std::get<0>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(, LateCall,
                         ::testing::Combine(::testing::Values(Kind::threads, Kind::processes), ::testing::Values("auto", "tcp")),
                         [](const auto& tested) { return name_of(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param); });

bool comes_to_know(setoComm_t comm) {
  const Deadline until = Deadline::after_ms(20'000);
  while (!could_know_of_rank_0(comm)) {
    if (until.passed()) return false;
    sched_yield();
  }
  return true;
}

using CallOf = std::function<setoResult_t(setoComm_t comm, const Seat& seat)>;

// Rank 0 waits for rank 1 until its deadline. Then rank 1 makes the same call.
void expect_late_failure(Kind kind, const CallOf& call) {
  run_ranks(kind, 2, [&](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    if (seat.rank == 0) {
      const Answer overdue = answer(call(comm, seat));
      EXPECT_EQ(overdue.code, setoTimeout) << overdue;
      EXPECT_TRUE(seat.meet(1));
      EXPECT_TRUE(seat.meet(2));
    } else {
      EXPECT_TRUE(seat.meet(1));
      EXPECT_TRUE(comes_to_know(comm));
      const Answer late = answer(call(comm, seat));
      EXPECT_EQ(late.code, setoRemoteError) << late;
      EXPECT_TRUE(late.says("300 ms (SETO_OPERATION_TIMEOUT_MS)")) << late;
      EXPECT_TRUE(seat.meet(2));
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST_P(LateCall, GetsNoSuccessFromAnAllReduce) {
  expect_late_failure(kind(), [](setoComm_t comm, const Seat& seat) {
    int value = seat.rank + 1;
    return setoAllReduce(&value, &value, 1, setoInt32, setoSum, comm, nullptr);
  });
}

TEST_P(LateCall, GetsNoSuccessFromALongAllGather) {
  expect_late_failure(kind(), [](setoComm_t comm, const Seat&) {
    std::vector<int> own(5'000, 1), all(10'000);
    return setoAllGather(own.data(), all.data(), own.size(), setoInt32, comm, nullptr);
  });
}

TEST_P(LateCall, GetsNoSuccessFromABarrier) {
  expect_late_failure(kind(), [](setoComm_t comm, const Seat&) { return setoBarrier(comm, nullptr); });
}

TEST_P(LateCall, GetsNoSuccessInAGroup) {
  expect_late_failure(kind(), [](setoComm_t comm, const Seat& seat) {
    std::array<int, 2> values{seat.rank, seat.rank};
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    for (int& value : values) EXPECT_EQ(setoAllReduce(&value, &value, 1, setoInt32, setoSum, comm, nullptr), setoSuccess);
    return setoGroupEnd();
  });
}

// Rank 0 has sent its message, and waits for one of rank 1.
TEST_P(LateCall, GetsNoSuccessFromAMessage) {
  expect_late_failure(kind(), [](setoComm_t comm, const Seat& seat) {
    int out = seat.rank, in = -1;
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    EXPECT_EQ(setoSend(&out, 1, setoInt32, 1 - seat.rank, comm, nullptr), setoSuccess);
    EXPECT_EQ(setoRecv(&in, 1, setoInt32, 1 - seat.rank, comm, nullptr), setoSuccess);
    return setoGroupEnd();
  });
}

// A rank that left without a failure has completed its operations: what it sent still counts.
TEST_P(LateCall, GetsTheDataOfARankThatLeftWithoutAFailure) {
  unsetenv("SETO_OPERATION_TIMEOUT_MS");  // no call is late
  run_ranks(kind(), 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    if (seat.rank == 1) {
      EXPECT_TRUE(seat.meet(1));
      EXPECT_TRUE(comes_to_know(comm));
    }
    int value = seat.rank == 0 ? 7 : 0;
    const Answer done = answer(setoBroadcast(&value, &value, 1, setoInt32, 0, comm, nullptr));
    EXPECT_EQ(done.code, setoSuccess) << done;
    EXPECT_EQ(value, 7);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    if (seat.rank == 0) {
      EXPECT_TRUE(seat.meet(1));
    }
  });
}

}  // namespace
}  // namespace seto::testing
