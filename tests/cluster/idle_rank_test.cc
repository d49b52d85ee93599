// A rank that makes no call, and polls the state of its communicator now and then, learns of failures of the others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kLost = 1;

// Polls until there is a failure, and returns it with its text.
Answer asked(setoComm_t comm) {
  const Deadline until = Deadline::after_ms(20'000);
  setoResult_t state = setoSuccess;
  while (state == setoSuccess && !until.passed()) {
    EXPECT_EQ(setoCommGetAsyncError(comm, &state), setoSuccess);
    std::this_thread::yield();
  }
  return {state, setoGetLastError(comm)};
}

// Checks the failure that the two idle ranks report when the third rank runs `lose`.
void expect_heard(const std::function<void(setoComm_t)>& lose, const std::string& part) {
  Job job(Kind::processes, kRanks, [&](const Seat& seat) {
    setenv("SETO_HEARTBEAT_MS", "50", 1);
    setenv("SETO_LIVENESS_TIMEOUT_MS", "3000", 1);  // no rank that only waits for a processor is silent so long
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    seat.meet(1);
    seat.board.counter[static_cast<std::size_t>(seat.rank)] = 2;
    if (seat.rank == kLost) {
      lose(comm);
      while (seat.board.signal.load() == 0) std::this_thread::yield();
      std::_Exit(0);
    }
    const Answer heard = asked(comm);
    EXPECT_EQ(heard.code, setoRemoteError) << "rank " << seat.rank << ": " << heard;
    EXPECT_TRUE(heard.says("rank 1")) << "rank " << seat.rank << ": " << heard;
    EXPECT_TRUE(heard.says(part)) << "rank " << seat.rank << ": " << heard;
    int value = 1;
    const Answer next = answer(setoAllReduce(&value, &value, 1, setoInt32, setoSum, comm, nullptr));
    EXPECT_EQ(next.text, heard.text) << "the first reason stays";
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    seat.board.counter[static_cast<std::size_t>(seat.rank)] = 3;
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kLost) continue;
    ASSERT_TRUE(job.reached(rank, 3));
  }
  job.board().signal = 1;
  kill(job.pid(kLost), SIGCONT);
  job.finish();
}

TEST(IdleRank, ReportsARankThatAborted) {
  expect_heard([](setoComm_t comm) { EXPECT_EQ(setoCommAbort(comm), setoSuccess); }, "setoCommAbort was called on rank 1");
}

TEST(IdleRank, ReportsAFrozenRank) {
  expect_heard([](setoComm_t) { raise(SIGSTOP); }, "gave no sign of life for ");
}

TEST(IdleRank, ReportsARankThatWasTooLate) {
  expect_heard(
      [](setoComm_t comm) {
        int value = 1;
        setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
        call.deadlineMs = 200;
        EXPECT_EQ(setoAllReduceConfig(&value, &value, 1, setoInt32, setoSum, comm, nullptr, &call), setoTimeout);
      },
      "never came");
}

TEST(IdleRank, ReportsAKilledRank) {
  Job job(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    seat.meet(1);
    seat.board.counter[static_cast<std::size_t>(seat.rank)] = 2;
    if (seat.rank == kLost)
      for (;;) pause();
    const Answer heard = asked(comm);
    EXPECT_EQ(heard.code, setoRemoteError) << "rank " << seat.rank << ": " << heard;
    EXPECT_TRUE(heard.says("rank 1")) << "rank " << seat.rank << ": " << heard;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  ASSERT_TRUE(job.reached(kLost, 2));
  job.kill(kLost);
  job.finish();
}

// The rank may have done all its work.
TEST(IdleRank, DoesNotReportARankThatDestroyedItsCommunicator) {
  run_ranks(Kind::processes, kRanks, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    if (seat.rank == kLost) {
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    }
    seat.meet(1);
    if (seat.rank == kLost) return;
    setoResult_t state = setoInternalError;
    const Deadline until = Deadline::after_ms(200);
    do {
      ASSERT_EQ(setoCommGetAsyncError(comm, &state), setoSuccess);
      EXPECT_EQ(state, setoSuccess) << setoGetLastError(comm);
    } while (!until.passed() && state == setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing
