// Memory of communicators that come and go in one context.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/api/support/handles.h"
#include "src/base/clock.h"
#include "tests/support/ranks.h"
#include "transports/slots/layout.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kRounds = 300;

std::size_t used_by(setoComm_t comm) { return comm->communicator()->context()->pool().used(); }

class Boards : public ::testing::TestWithParam<Kind> {};

// A slower rank may still look at the last board when the next communicator is made: so a few may be out, never more.
TEST_P(Boards, OfCommunicatorsThatAreGoneComeBack) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t parent = seat.join();
    ASSERT_NE(parent, nullptr);
    expect_works(parent, seat);
    std::size_t early = 0;
    for (int round = 0; round < kRounds; ++round) {
      setoComm_t child = nullptr;
      const Answer made = answer(setoCommSplit(parent, 0, seat.rank, &child, nullptr));
      ASSERT_EQ(made.code, setoSuccess) << "round " << round << ": " << made;
      // Marks of an earlier communicator on a board that was not cleared would be taken for those of this one.
      std::vector<int> values(round % 2 == 0 ? 4 : 3000, seat.rank + round);
      const Answer done = answer(setoAllReduce(values.data(), values.data(), values.size(), setoInt32, setoSum, child, nullptr));
      ASSERT_EQ(done.code, setoSuccess) << "round " << round << ", rank " << seat.rank << ": " << done;
      ASSERT_EQ(values.back(), 3 + 3 * round) << "round " << round << ", rank " << seat.rank;
      EXPECT_EQ(setoCommDestroy(child), setoSuccess);
      if (round == 10) early = used_by(parent);
    }
    const slots::BoardLayout board(kRanks, 16);
    EXPECT_LE(used_by(parent), early + 3 * board.size() + (64 << 10));
    EXPECT_EQ(setoCommDestroy(parent), setoSuccess);
  });
}

// Who destroys first still tells the others that it left, though its board waits to be cleared.
TEST_P(Boards, OfOneThatLeftSayThatItLeftWhileOthersStay) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t parent = seat.join();
    ASSERT_NE(parent, nullptr);
    setoComm_t child = nullptr;
    ASSERT_EQ(setoCommSplit(parent, 0, seat.rank, &child, nullptr), setoSuccess);
    if (seat.rank == 1) {
      EXPECT_EQ(setoCommDestroy(child), setoSuccess);
      for (int round = 0; round < 20; ++round) {  // each looks whether that board may be cleared
        setoComm_t alone = nullptr;
        ASSERT_EQ(setoCommSplit(parent, seat.rank, 0, &alone, nullptr), setoSuccess);
        EXPECT_EQ(setoCommDestroy(alone), setoSuccess);
      }
    } else {
      for (int round = 0; round < 20; ++round) {
        setoComm_t alone = nullptr;
        ASSERT_EQ(setoCommSplit(parent, seat.rank, 0, &alone, nullptr), setoSuccess);
        EXPECT_EQ(setoCommDestroy(alone), setoSuccess);
      }
      const std::uint64_t begin = monotonic_ns();
      float value = 1;
      const Answer heard = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, child, nullptr));
      EXPECT_EQ(heard.code, setoRemoteError) << heard;
      EXPECT_TRUE(heard.says("left") && heard.says("rank 1")) << heard;
      EXPECT_LT(static_cast<double>(monotonic_ns() - begin) / 1e9, 2);
      EXPECT_EQ(setoCommDestroy(child), setoSuccess);
    }
    EXPECT_EQ(setoCommDestroy(parent), setoSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, Boards, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace seto::testing
