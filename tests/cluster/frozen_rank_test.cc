// A frozen process of the same machine: no connection closes, and only missing heartbeats reveal it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

// Sets the limits of the process before the library reads them.
void expect_quick_liveness() {
  setenv("SETO_HEARTBEAT_MS", "50", 1);
  setenv("SETO_LIVENESS_TIMEOUT_MS", "3000", 1);  // no rank that only waits for a processor is silent so long
}

TEST(FrozenRank, IsNamedByAllOthersAndFailsWhenItContinues) {
  constexpr int kRanks = 3;
  constexpr int kFrozen = 1;
  Job job(Kind::processes, kRanks, [](const Seat& seat) {
    expect_quick_liveness();
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    expect_works(comm, seat);
    const auto rank = static_cast<std::size_t>(seat.rank);
    std::vector<float> values(1000, 1.0F);
    seat.meet(1);
    if (seat.rank == kFrozen) {
      seat.board.counter[rank] = 2;
      raise(SIGSTOP);
    }
    Answer heard;
    do {
      heard = answer(setoAllReduce(values.data(), values.data(), values.size(), setoFloat32, setoMax, comm, nullptr));
    } while (heard.code == setoSuccess);
    seat.board.time_ns[rank] = monotonic_ns();
    EXPECT_EQ(heard.code, setoRemoteError) << heard;
    if (seat.rank != kFrozen) {
      EXPECT_TRUE(heard.says("rank 1")) << heard;
      EXPECT_TRUE(heard.says("left the communicator") || heard.says("gave no sign of life for 3.") ||
                  heard.says("gave no sign of life for 4."))
          << heard;
    }
    seat.board.counter[rank] = 3;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  ASSERT_TRUE(job.reached(kFrozen, 2));
  const std::uint64_t start = monotonic_ns();
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == kFrozen) continue;
    ASSERT_TRUE(job.reached(rank, 3));
  }
  std::printf("the others ended within %.0f ms\n", static_cast<double>(monotonic_ns() - start) * 1e-6);
  kill(job.pid(kFrozen), SIGCONT);
  job.finish();
}

}  // namespace
}  // namespace seto::testing
