// Over TCP a call may end while its data is still in flight. The data arrives, or the receiver learns that it will not.

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "src/api/support/handles.h"
#include "src/base/clock.h"
#include "tests/support/ranks.h"
#include "tests/support/tries.h"

namespace seto::testing {
namespace {

class LastWords : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("SETO_TRANSPORT", "tcp", 1);
    setenv("SETO_TCP_STREAMS", GetParam(), 1);
    setenv("SETO_CALIBRATE", "off", 1);
  }
  void TearDown() override {
    for (const char* name : {"SETO_TRANSPORT", "SETO_TCP_STREAMS", "SETO_CALIBRATE"}) unsetenv(name);
  }
};

// More than a call buffers itself, and less than the kernel accepts for a peer that does not read: 2.7 MB over loopback where a
// socket's send buffer may have 4 MiB.
constexpr std::size_t kInts = std::size_t{1} << 18;

TEST_P(LastWords, OfABroadcastAreReadAfterItsRootIsGone) {
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<int> values(kInts, seat.rank == 0 ? 7 : 0);
    if (seat.rank == 1) {
      ASSERT_TRUE(seat.meet(1));
    }
    const Answer done = answer(setoBroadcast(values.data(), values.data(), kInts, setoInt32, 0, comm, nullptr));
    EXPECT_EQ(done.code, setoSuccess) << done;
    EXPECT_EQ(values, std::vector<int>(kInts, 7));
    if (seat.rank == 0) {
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
      ASSERT_TRUE(seat.meet(1));
      return;
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

TEST_P(LastWords, OfAMessageAreReadAfterItsSenderIsGone) {
  constexpr std::size_t kCount = 50'000;
  run_ranks(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    std::vector<int> values(kCount, seat.rank == 0 ? 7 : 0);
    if (seat.rank == 0) {
      EXPECT_EQ(answer(setoSend(values.data(), kCount, setoInt32, 1, comm, nullptr)).code, setoSuccess);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
      ASSERT_TRUE(seat.meet(1));
      return;
    }
    ASSERT_TRUE(seat.meet(1));
    const Answer done = answer(setoRecv(values.data(), kCount, setoInt32, 0, comm, nullptr));
    EXPECT_EQ(done.code, setoSuccess) << done;
    EXPECT_EQ(values, std::vector<int>(kCount, 7));
    const Answer more = answer(setoRecv(values.data(), kCount, setoInt32, 0, comm, nullptr));
    EXPECT_EQ(more.code, setoRemoteError) << more;
    EXPECT_TRUE(more.says("rank 0")) << more;
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
}

// The peer reads nothing at all, so the sent data stays in the buffers.
double ms_of_an_abort_of_unread_data() {
  constexpr std::size_t kMuch = std::size_t{32} << 20;
  Job job(Kind::processes, 2, [](const Seat& seat) {
    const setoComm_t comm = seat.join();
    ASSERT_NE(comm, nullptr);
    if (seat.rank == 1) {
      ASSERT_TRUE(seat.meet(1));
      EXPECT_EQ(setoCommAbort(comm), setoSuccess);
      return;
    }
    std::vector<int> values(kMuch, 7);
    std::thread caller(
        [&] { EXPECT_NE(setoBroadcast(values.data(), values.data(), kMuch, setoInt32, 0, comm, nullptr), setoSuccess); });
    while (comm->active_calls.load() == 0) std::this_thread::yield();  // from then on the handle's memory stays valid
    const std::uint64_t start = monotonic_ns();
    EXPECT_EQ(setoCommAbort(comm), setoSuccess);
    caller.join();
    seat.board.time_ns[0] = monotonic_ns() - start;
    ASSERT_TRUE(seat.meet(1));
  });
  job.finish();
  return static_cast<double>(job.board().time_ns[0]) / 1e6;
}

TEST_P(LastWords, DoNotDelayAnAbort) {
  constexpr double kMostMs = 1'500;
  EXPECT_LT(least_of(3, kMostMs, ms_of_an_abort_of_unread_data), kMostMs) << "an orderly close may take 2 s";
}

INSTANTIATE_TEST_SUITE_P(Sockets, LastWords, ::testing::Values("1", "4"));

}  // namespace
}  // namespace seto::testing
