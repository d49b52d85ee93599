// Destroying a communicator on one rank waits for no other rank.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr std::uint32_t kDeadlineMs = 20'000;
constexpr double kAtOnce = 5;  // far below that, and enough for a busy machine

class Destroying : public ::testing::TestWithParam<Kind> {};

setoComm_t join_and_use(const Seat& seat) {
  setoConfig_t config = config_of_test();
  config.operationTimeoutMs = kDeadlineMs;
  const setoComm_t comm = seat.join(config);
  if (comm != nullptr) expect_works(comm, seat);
  return comm;
}

void destroy_at_once(setoComm_t comm) {
  const std::uint64_t begin = monotonic_ns();
  const Answer destroyed = answer(setoCommDestroy(comm));
  EXPECT_EQ(destroyed.code, setoSuccess) << destroyed;
  EXPECT_LT(static_cast<double>(monotonic_ns() - begin) / 1e9, kAtOnce);
}

// The other ranks have not made the call. They fail with the reason although that rank is gone.
TEST_P(Destroying, AfterACallWasRejected) {
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    const setoComm_t comm = join_and_use(seat);
    ASSERT_NE(comm, nullptr);
    float value = 1;
    if (seat.rank == 0) {
      const auto wrong = static_cast<setoDataType_t>(13);
      const Answer refused = answer(setoAllReduce(&value, &value, 1, wrong, setoSum, comm, nullptr));
      EXPECT_EQ(refused.code, setoInvalidArgument) << refused;
      destroy_at_once(comm);
      seat.meet(1);
      return;
    }
    seat.meet(1);
    const Answer heard = answer(setoAllReduce(&value, &value, 1, setoFloat32, setoSum, comm, nullptr));
    EXPECT_EQ(heard.code, setoRemoteError) << heard;
    EXPECT_TRUE(heard.says("rank 0 rejected its call (datatype: 13 is not a setoDataType_t)")) << heard;
    destroy_at_once(comm);
  });
}

// Data that the root sent is read after the root is gone.
TEST_P(Destroying, AfterABroadcastThatNoRankHasRead) {
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    const setoComm_t comm = join_and_use(seat);
    ASSERT_NE(comm, nullptr);
    std::vector<int> values(10, seat.rank == 0 ? 7 : 0);
    if (seat.rank > 0) seat.meet(1);
    const Answer cast = answer(setoBroadcast(values.data(), values.data(), values.size(), setoInt32, 0, comm, nullptr));
    EXPECT_EQ(cast.code, setoSuccess) << cast;
    EXPECT_EQ(values, std::vector<int>(10, 7));
    destroy_at_once(comm);
    if (seat.rank == 0) seat.meet(1);
  });
}

// A rank that finalizes sees other ranks end and leave at any moment. It must not take one of them for a rank that still works.
TEST_P(Destroying, WhileAnotherRankFinalizes) {
  constexpr std::uint64_t kRounds = 150;
  run_ranks(GetParam(), 3, [](const Seat& seat) {
    const setoComm_t parent = join_and_use(seat);
    ASSERT_NE(parent, nullptr);
    const auto await = [&](std::size_t rank, std::uint64_t count) {
      while (seat.board.counter[rank].load() < count) std::this_thread::yield();
    };
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      setoComm_t comm = nullptr;
      ASSERT_EQ(setoCommSplit(parent, 0, seat.rank, &comm, nullptr), setoSuccess);
      if (seat.rank > 0) await(static_cast<std::size_t>(seat.rank) - 1, round);  // rank 0 finalizes, rank 1 is gone
      const std::uint64_t begin = monotonic_ns();
      while (monotonic_ns() - begin < round * 700 % 50'000) {
      }
      int value = seat.rank;
      ASSERT_EQ(setoBroadcast(&value, &value, 1, setoInt32, 0, comm, nullptr), setoSuccess);
      if (seat.rank == 0) seat.board.counter[0] = round;
      if (seat.rank != 1) {
        const Answer finalized = answer(setoCommFinalize(comm));
        EXPECT_EQ(finalized.code, setoSuccess) << "round " << round << ": " << finalized;
      }
      destroy_at_once(comm);
      if (seat.rank == 1) seat.board.counter[1] = round;
    }
    destroy_at_once(parent);
  });
}

INSTANTIATE_TEST_SUITE_P(Cluster, Destroying, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace seto::testing
