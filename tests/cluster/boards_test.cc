// Memory of communicators that are made and destroyed in one context.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/core/connect/context.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "transports/slots/layout.h"

namespace seto::testing {
namespace {

constexpr int kRanks = 3;
constexpr int kRounds = 300;

std::size_t used_by(setoComm_t comm) { return context_of(comm).transports().memory_use().used; }

class Boards : public ::testing::TestWithParam<Kind> {};

// A slower rank may still read the last board when the next communicator is made, so a few boards may be in use, but not more.
TEST_P(Boards, OfDestroyedCommunicatorsAreReused) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t parent = seat.join();
    ASSERT_NE(parent, nullptr);
    expect_works(parent, seat);
    std::size_t early = 0;
    for (int round = 0; round < kRounds; ++round) {
      setoComm_t child = nullptr;
      const Answer made = answer(setoCommSplit(parent, 0, seat.rank, &child, nullptr));
      ASSERT_EQ(made.code, setoSuccess) << "round " << round << ": " << made;
      // If a board were not cleared, marks of an earlier communicator would be taken for those of this one.
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

// A rank that destroys its communicator first still reports to the others that it left, although its board waits to be cleared.
TEST_P(Boards, ReportADepartureUntilTheOthersLeave) {
  run_ranks(GetParam(), kRanks, [](const Seat& seat) {
    const setoComm_t parent = seat.join();
    ASSERT_NE(parent, nullptr);
    setoComm_t child = nullptr;
    ASSERT_EQ(setoCommSplit(parent, 0, seat.rank, &child, nullptr), setoSuccess);
    if (seat.rank == 1) {
      EXPECT_EQ(setoCommDestroy(child), setoSuccess);
      for (int round = 0; round < 20; ++round) {  // each round checks whether that board may be cleared
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
      EXPECT_LT(static_cast<double>(monotonic_ns() - begin) / 1e9, 20) << "its deadline is half an hour away";
      EXPECT_EQ(setoCommDestroy(child), setoSuccess);
    }
    EXPECT_EQ(setoCommDestroy(parent), setoSuccess);
  });
}

// Boards serve the ranks of one node, so many ranks on other nodes need no more shared memory.
TEST(BoardsOfANode, AreSizedByItsRanksAndNotByAllRanks) {
  constexpr int kAll = 12, kOnANode = 2;
  constexpr std::uint32_t kPorts = 24;
  constexpr std::size_t kLimit = 512 << 10;
  ASSERT_GT(slots::BoardLayout(kAll, kPorts).size(), kLimit);
  ASSERT_LT(slots::BoardLayout(kOnANode, kPorts).size(), kLimit / 2);
  setenv("SETO_SHARED_MEMORY_LIMIT", "512K", 1);
  run_ranks(Kind::processes, kAll, [](const Seat& seat) {
    setoConfig_t config = config_of_test();
    const std::string host = "node" + std::to_string(seat.rank / kOnANode);
    config.hostId = host.c_str();
    const setoComm_t comm = seat.join(config);
    ASSERT_NE(comm, nullptr);
    int sum = seat.rank;  // a few bytes, so that slots stay below the limit, which is meant for the board
    const Answer done = answer(setoAllReduce(&sum, &sum, 1, setoInt32, setoSum, comm, nullptr));
    EXPECT_EQ(done.code, setoSuccess) << "rank " << seat.rank << ": " << done;
    EXPECT_EQ(sum, kAll * (kAll - 1) / 2);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  unsetenv("SETO_SHARED_MEMORY_LIMIT");
}

INSTANTIATE_TEST_SUITE_P(Cluster, Boards, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace seto::testing
