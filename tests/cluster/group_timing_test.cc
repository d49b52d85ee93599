// The cost of a call in a group must not depend on the number of calls.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/api_ranks.h"

namespace seto::testing {
namespace {

constexpr int kFewer = 500;
constexpr int kMore = 4'000;
// A cost that grows with the square of the number would be 8 times as high for each call.
constexpr double kMostGrowth = 3;
constexpr int kRounds = 2;
constexpr std::uint64_t kPatienceMs = 20'000;  // with a busy machine

// The time of kMore calls in groups of `calls`, in nanoseconds for each call. Each size makes the same number of calls, so that
// other programs interrupt each size alike.
double ns_per_call(const ApiRank& own, int calls, const std::function<void(const ApiRank& own, int call)>& add) {
  const std::uint64_t start = monotonic_ns();
  for (int group = 0; group < kMore / calls; ++group) {
    EXPECT_EQ(setoGroupStart(), setoSuccess);
    for (int call = 0; call < calls; ++call) add(own, call);
    EXPECT_EQ(outcome(setoGroupEnd()), "setoSuccess");
  }
  return static_cast<double>(monotonic_ns() - start) / kMore;
}

// Both ranks give the same answer.
bool on_all_ranks(const ApiRank& own, bool mine) {
  int all = mine ? 1 : 0;
  EXPECT_EQ(outcome(setoAllReduce(&all, &all, 1, setoInt32, setoMin, own.comm, nullptr)), "setoSuccess");
  return all == 1;
}

// Other programs only add time, so the shortest times count. The two sizes take turns until the shortest times are even, because
// the processor may be taken away for longer than several rounds of one size take.
void expect_even_cost(const std::function<void(const ApiRank& own, int call)>& add) {
  EXPECT_TRUE(run_ranks(Ranks::as_threads, 2, [&](ApiRank& own) {
    double fewer = std::numeric_limits<double>::max();
    double more = fewer;
    const Deadline patience = Deadline::after_ms(kPatienceMs);
    bool ended = false;
    for (int round = 1; !ended; ++round) {
      fewer = std::min(fewer, ns_per_call(own, kFewer, add));
      more = std::min(more, ns_per_call(own, kMore, add));
      ended = on_all_ranks(own, (round >= kRounds && more < kMostGrowth * fewer) || patience.passed());
    }
    std::printf("rank %d: %d calls %.0f ns each, %d calls %.0f ns each\n", own.rank, kFewer, fewer, kMore, more);
    EXPECT_LT(more, kMostGrowth * fewer);
  }));
}

TEST(GroupCost, OfACollectiveDoesNotGrowWithTheGroup) {
  static float buffers[2][kMore];
  expect_even_cost([](const ApiRank& own, int call) {
    float* const value = &buffers[own.rank][call];
    EXPECT_EQ(setoAllReduce(value, value, 1, setoFloat32, setoSum, own.comm, nullptr), setoSuccess);
  });
}

TEST(GroupCost, OfAMessageDoesNotGrowWithTheGroup) {
  static float out[2][kMore], in[2][kMore];
  expect_even_cost([](const ApiRank& own, int call) {
    EXPECT_EQ(setoSend(&out[own.rank][call], 1, setoFloat32, 1 - own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoRecv(&in[own.rank][call], 1, setoFloat32, 1 - own.rank, own.comm, nullptr), setoSuccess);
  });
}

TEST(GroupCost, OfAMessageToOneselfDoesNotGrowWithTheGroup) {
  static float out[2][kMore], in[2][kMore];
  expect_even_cost([](const ApiRank& own, int call) {
    EXPECT_EQ(setoAllReduce(&in[own.rank][call], &in[own.rank][call], 1, setoFloat32, setoSum, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoSend(&out[own.rank][call], 1, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
    EXPECT_EQ(setoRecv(&in[own.rank][call], 1, setoFloat32, own.rank, own.comm, nullptr), setoSuccess);
  });
}

TEST(GroupCost, OfAnExchangeDoesNotGrowWithTheGroup) {
  static float out[2][kMore][2], in[2][kMore][2];
  expect_even_cost([](const ApiRank& own, int call) {
    constexpr std::size_t kCounts[2] = {1, 1}, kOffsets[2] = {0, 1};
    EXPECT_EQ(setoAllToAllv(out[own.rank][call], kCounts, kOffsets, in[own.rank][call], kCounts, kOffsets, setoFloat32, own.comm,
                            nullptr),
              setoSuccess);
  });
}

}  // namespace
}  // namespace seto::testing
