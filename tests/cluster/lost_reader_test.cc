// Memory that a peer was to read when its process was killed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "src/api/support/handles.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::size_t kBytes = 20'000;  // in slots, and few enough of them that nobody has to read for the sender to be done

Context& context_of(setoComm_t comm) { return *comm->communicator()->context(); }

class LostReaders : public ::testing::TestWithParam<int> {};

TEST_P(LostReaders, GiveBackWhatTheyWereToRead) {
  const int ranks = GetParam();
  Job job(Kind::processes, ranks, [](const Seat& seat) {
    const setoComm_t parent = seat.join();
    ASSERT_NE(parent, nullptr);
    setoComm_t child = nullptr;
    ASSERT_EQ(setoCommSplit(parent, 0, seat.rank, &child, nullptr), setoSuccess);
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank > 0)
      for (;;) pause();
    const std::size_t before = context_of(parent).pool().leased();
    std::vector<char> bytes(kBytes);
    const Answer cast = answer(setoBroadcast(bytes.data(), bytes.data(), kBytes, setoUint8, 0, child, nullptr));
    EXPECT_EQ(cast.code, setoSuccess) << cast;
    const Answer sent = answer(setoSend(bytes.data(), kBytes, setoUint8, 1, child, nullptr));
    EXPECT_EQ(sent.code, setoSuccess) << sent;
    EXPECT_GT(context_of(parent).pool().leased(), before);
    seat.board.counter[0] = 2;
    EXPECT_TRUE(eventually([&] {
      const CommunicatorState state = parent->communicator()->state();
      for (int rank = 1; rank < seat.ranks; ++rank)
        if (state.peers[static_cast<std::size_t>(rank)].life != PeerState::Life::dead) return false;
      return true;
    }));
    EXPECT_EQ(setoCommAbort(child), setoSuccess);
    EXPECT_EQ(context_of(parent).pool().leased(), before);
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
