// Memory that a peer had not read when its process was killed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "src/core/connect/context.h"
#include "tests/support/communicators.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::size_t kBytes = 20'000;  // in slots, few enough that the sender ends before its receivers read

class LostReaders : public ::testing::TestWithParam<int> {};

TEST_P(LostReaders, ReturnTheMemoryThatTheyHadNotRead) {
  const int ranks = GetParam();
  Job job(Kind::processes, ranks, [](const Seat& seat) {
    const setoComm_t parent = seat.join();
    ASSERT_NE(parent, nullptr);
    setoComm_t child = nullptr;
    ASSERT_EQ(setoCommSplit(parent, 0, seat.rank, &child, nullptr), setoSuccess);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank > 0)
      for (;;) pause();
    const std::size_t before = context_of(parent).transports().memory_use().leased;
    std::vector<char> bytes(kBytes);
    const Answer cast = answer(setoBroadcast(bytes.data(), bytes.data(), kBytes, setoUint8, 0, child, nullptr));
    EXPECT_EQ(cast.code, setoSuccess) << cast;
    const Answer sent = answer(setoSend(bytes.data(), kBytes, setoUint8, 1, child, nullptr));
    EXPECT_EQ(sent.code, setoSuccess) << sent;
    EXPECT_GT(context_of(parent).transports().memory_use().leased, before);
    seat.board.counter[0] = 2;
    EXPECT_TRUE(eventually([&] {
      const CommunicatorSnapshot state = state_of(parent);
      for (int rank = 1; rank < seat.ranks; ++rank)
        if (state.peers[static_cast<std::size_t>(rank)].life != PeerState::Life::dead) return false;
      return true;
    }));
    EXPECT_EQ(setoCommAbort(child), setoSuccess);
    EXPECT_EQ(context_of(parent).transports().memory_use().leased, before);
    EXPECT_EQ(setoCommDestroy(parent), setoSuccess);
  });
  ASSERT_TRUE(job.reached(0, 2));
  for (int rank = 1; rank < ranks; ++rank) job.kill(rank);
  job.finish();
}

INSTANTIATE_TEST_SUITE_P(Cluster, LostReaders, ::testing::Values(2, 3),
                         [](const auto& one) { return std::to_string(one.param - 1); });

}  // namespace
}  // namespace seto::testing
