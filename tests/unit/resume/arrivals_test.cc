// Copies of a frame that come over several paths: the first whole one counts, and no other writes after that.

#include "transports/resume/arrivals.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace seto::resume {
namespace {

using Action = Arrivals::Action;

Action begin(Arrivals& arrivals, std::uint32_t path, std::uint64_t number) {
  const Result<Arrivals::Begun> begun = arrivals.begin(path, number);
  EXPECT_TRUE(begun.ok()) << begun.status().text();
  return begun.ok() ? begun.value().action : Action::drop;
}

TEST(Arrivals, AFrameCountsWhenItIsWhole) {
  Arrivals arrivals(64);
  EXPECT_EQ(begin(arrivals, 0, 1), Action::place);
  EXPECT_EQ(arrivals.heard().all_up_to, 0U) << "its header alone is no frame";
  const Arrivals::Completed whole = arrivals.complete(0);
  EXPECT_TRUE(whole.counts);
  EXPECT_EQ(whole.turn_away, 0U);
  EXPECT_EQ(arrivals.heard().all_up_to, 1U);
}

TEST(Arrivals, ALateCopyIsDropped) {
  Arrivals arrivals(64);
  EXPECT_EQ(begin(arrivals, 0, 1), Action::place);
  (void)arrivals.complete(0);
  EXPECT_EQ(begin(arrivals, 1, 1), Action::drop);
  EXPECT_FALSE(arrivals.complete(1).counts);
  EXPECT_FALSE(arrivals.path_broke(1).abandoned);
}

TEST(Arrivals, HalfCopiesAreTurnedAwayWhenAnotherIsWhole) {
  Arrivals arrivals(64);
  EXPECT_EQ(begin(arrivals, 0, 1), Action::place);
  EXPECT_EQ(begin(arrivals, 5, 1), Action::join);
  EXPECT_EQ(begin(arrivals, 3, 2), Action::place) << "another frame";
  const Arrivals::Completed whole = arrivals.complete(5);
  EXPECT_TRUE(whole.counts);
  EXPECT_EQ(whole.turn_away, PathSet{1} << 0);
  EXPECT_FALSE(arrivals.complete(0).counts) << "the rest of the first copy";
  EXPECT_EQ(arrivals.heard().all_up_to, 1U);
}

TEST(Arrivals, AHalfFrameIsAbandonedWithItsLastPath) {
  Arrivals arrivals(64);
  EXPECT_EQ(begin(arrivals, 0, 1), Action::place);
  EXPECT_EQ(begin(arrivals, 1, 1), Action::join);
  EXPECT_FALSE(arrivals.path_broke(0).abandoned) << "the other path still brings it, into the same memory";
  const Arrivals::Half half = arrivals.path_broke(1);
  EXPECT_TRUE(half.abandoned);
  EXPECT_EQ(half.number, 1U);
  EXPECT_EQ(begin(arrivals, 0, 1), Action::place) << "its memory is chosen anew";
  EXPECT_EQ(arrivals.path_broke(2).number, 0U) << "between two frames";
}

TEST(Arrivals, ATurnedAwayHalfIsNotAbandoned) {
  Arrivals arrivals(64);
  EXPECT_EQ(begin(arrivals, 0, 1), Action::place);
  EXPECT_EQ(begin(arrivals, 1, 1), Action::join);
  (void)arrivals.complete(1);
  EXPECT_FALSE(arrivals.path_broke(0).abandoned) << "the message is complete and may be used already";
}

TEST(Arrivals, NumbersThatNobodySendsAreRefused) {
  Arrivals arrivals(64);
  EXPECT_FALSE(arrivals.begin(0, 0).ok());
  EXPECT_FALSE(arrivals.begin(0, 65).ok());
  EXPECT_FALSE(arrivals.begin(0, ~std::uint64_t{0}).ok());
  EXPECT_EQ(begin(arrivals, 0, 64), Action::place);
}

}  // namespace
}  // namespace seto::resume
