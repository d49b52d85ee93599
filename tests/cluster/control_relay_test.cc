// Control messages that processes pass on (SETO_CONTROL_RELAY=on), in a job where each process has control channels to some
// others only.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

// Each has channels to those at distances 1, 2, 4 and 8 on both sides: to 8 of 11.
constexpr int kRanks = 12;

class ControlRelay : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SETO_TRANSPORT", "tcp", 1);
    setenv("SETO_CONNECT", "used", 1);
    setenv("SETO_CONTROL_RELAY", "on", 1);
    setenv("SETO_CALIBRATE", "off", 1);
  }
  void TearDown() override {
    for (const char* name : {"SETO_TRANSPORT", "SETO_CONNECT", "SETO_CONTROL_RELAY", "SETO_CALIBRATE", "SETO_SITE_ID"})
      unsetenv(name);
  }
};

setoResult_t sum_of_ones(setoComm_t comm) {
  std::vector<float> values(100, 1.0F);
  return setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoSum, comm, nullptr);
}

// All others name it, whether they have a channel to it or not; no process that passed on its messages is taken for it.
void expect_victim_is_named(int victim) {
  Job job(Kind::processes, kRanks, [victim](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    ASSERT_TRUE(seat.meet(1));
    Answer heard;
    do {
      heard = answer(sum_of_ones(comm));
    } while (heard.code == setoSuccess);
    EXPECT_EQ(heard.code, setoRemoteError) << heard;
    EXPECT_TRUE(heard.says("rank " + std::to_string(victim))) << heard;
    // A survivor without a channel to another one hears that it leaves.
    int value = 0;
    if (victim != 1 && victim != 4 && seat.rank == 4) {
      const Answer left = answer(setoRecv(&value, 1, setoInt32, 1, comm, nullptr));
      EXPECT_NE(left.code, setoSuccess) << left;
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(job.reached(rank, 1));
  job.kill(victim);
  job.finish();
}

TEST_F(ControlRelay, AKilledProcessIsNamedByAll) {
  for (const int victim : {0, 5}) expect_victim_is_named(victim);
}

TEST_F(ControlRelay, SitesMayBeStated) {
  setenv("SETO_SITE_ID", "here", 1);
  expect_victim_is_named(11);
}

// Each waits for one that leaves without a word, over a process that has left before.
TEST_F(ControlRelay, ARankThatLeavesIsNoticedByOthers) {
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank != 0 && seat.rank != 3) {
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
      ASSERT_TRUE(seat.meet(2));
      ASSERT_TRUE(seat.meet(3));
      return;
    }
    ASSERT_TRUE(seat.meet(2));
    int value = seat.rank;
    if (seat.rank == 0) {
      EXPECT_EQ(answer(setoSend(&value, 1, setoInt32, 3, comm, nullptr)).code, setoSuccess);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    } else {
      EXPECT_EQ(answer(setoRecv(&value, 1, setoInt32, 0, comm, nullptr)).code, setoSuccess);
      EXPECT_EQ(value, 0);
      const Answer more = answer(setoRecv(&value, 1, setoInt32, 0, comm, nullptr));
      EXPECT_EQ(more.code, setoRemoteError) << more;
      EXPECT_TRUE(more.says("rank 0")) << more;
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    }
    ASSERT_TRUE(seat.meet(3));
  });
}

TEST_F(ControlRelay, AnAbortEndsTheCallsOfAll) {
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 7) {
      EXPECT_EQ(setoCommAbort(comm), setoSuccess);
      return;
    }
    Answer heard;
    do {
      heard = answer(sum_of_ones(comm));
    } while (heard.code == setoSuccess);
    EXPECT_TRUE(heard.says("rank 7")) << heard;
    EXPECT_EQ(setoCommAbort(comm), setoSuccess);
  });
}

TEST_F(ControlRelay, SplitsUseTheOverlayOfTheirParent) {
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    for (int round = 0; round < 2; ++round) {
      setoComm_t part = nullptr;
      ASSERT_EQ(answer(setoCommSplit(comm, seat.rank % 3, seat.rank, &part, nullptr)).code, setoSuccess);
      int value = seat.rank;
      EXPECT_EQ(answer(setoAllReduce(&value, &value, 1, setoInt32, setoMax, part, nullptr)).code, setoSuccess);
      EXPECT_EQ(value, 9 + seat.rank % 3);
      EXPECT_EQ(setoCommDestroy(part), setoSuccess);
    }
    expect_works(comm, seat);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST_F(ControlRelay, TheSettingMustBeTheSameOnAllRanks) {
  run_ranks(Kind::processes, 3, [](const Seat& seat) {
    setenv("SETO_CONTROL_RELAY", seat.rank == 2 ? "off" : "on", 1);
    setoComm_t comm = nullptr;
    setoConfig_t config = config_of_test();
    const Answer done = answer(setoCommInitRankConfig(&comm, seat.ranks, seat.id(), seat.rank, &config));
    EXPECT_EQ(done.code, setoInvalidUsage) << done;
    EXPECT_TRUE(done.says("SETO_CONTROL_RELAY is 'on' on rank 0 and 'off' on rank 2")) << done;
  });
}

}  // namespace
}  // namespace seto::testing
