// Which connections a context offers, and which of several two contexts use. Real connections to one other process.

#include "src/core/connect/connection_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "src/core/connect/context.h"
#include "src/core/neighbour.h"
#include "tests/support/other_context.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kInitMs = 10'000;
constexpr std::size_t kLimit = 2;
constexpr const char* kHost = "here";

struct Met {
  PeerAddress peer;
  Connections by;  // by the number of the attempt; null for 0
};

Result<Met> meet_other(Context& context, Room& room, const Seat& seat) {
  const Deadline until = Deadline::after_ms(kInitMs);
  SETO_ASSIGN(PeerAddress other, other_context(context, room, seat, until));
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  SETO_ASSIGN(Heartbeats* const heartbeats, context.beat());
  const std::string& mine = meetings->address();
  Met met{other, {nullptr}};
  for (other.attempt = 1; other.attempt <= 3; ++other.attempt) {
    const Neighbour::Introduced both{{mine, {context.id()}}, {other.process, {other.context}}, other.attempt};
    SETO_ASSIGN(Neighbour::Approach approach, Neighbour::approach(both, until));
    SETO_ASSIGN(const Connections one, Neighbour::meet(std::move(approach), *heartbeats));
    met.by.push_back(one.front());
  }
  return met;
}

void check(const Met& met) {
  Acquaintances acquaintances(kLimit);
  Connections dead;
  EXPECT_EQ(acquaintances.known(kHost, dead).offered(), Attempts{});
  acquaintances.keep({nullptr, met.by[3]}, kHost);
  acquaintances.keep({met.by[2]}, kHost);
  const KnownConnections two = acquaintances.known(kHost, dead);
  EXPECT_EQ(two.offered(), (Attempts{2, 3}));
  EXPECT_EQ(two.shared_with(met.peer, {1, 2, 3}), met.by[2]) << "the smallest number, whichever came first";
  EXPECT_EQ(two.shared_with(met.peer, {1, 3}), met.by[3]);
  EXPECT_EQ(two.shared_with(met.peer, {1}), nullptr);
  EXPECT_EQ(two.shared_with({met.peer.process, met.peer.context + 1, 0}, {2, 3}), nullptr) << "another context's";
  EXPECT_EQ(two.shared_with({met.peer.process + "x", met.peer.context, 0}, {2, 3}), nullptr) << "another process's";

  acquaintances.keep({met.by[1]}, kHost);
  const KnownConnections newest = acquaintances.known(kHost, dead);
  EXPECT_EQ(newest.offered(), (Attempts{1, 2})) << "what was of no use for longest is left out";
  EXPECT_EQ(newest.shared_with(met.peer, {3}), nullptr) << "not offered";
  acquaintances.keep({met.by[3]}, kHost);
  EXPECT_EQ(acquaintances.known(kHost, dead).offered(), (Attempts{1, 3})) << "of use again";
  EXPECT_EQ(two.offered(), (Attempts{2, 3})) << "what was said stays";
  EXPECT_TRUE(dead.empty());
  EXPECT_GT(met.by[1].use_count(), 1);

  acquaintances.keep({met.by[2]}, "elsewhere");
  EXPECT_EQ(acquaintances.known(kHost, dead).offered(), (Attempts{1, 3})) << "of another medium, perhaps";
  EXPECT_EQ(acquaintances.known("elsewhere", dead).offered(), Attempts{});
  EXPECT_EQ(dead.size(), 3U);
}

TEST(Acquaintances, OfferWhatBothEndsMayUse) {
  const Shared<Room> room;
  Job job(Kind::processes, 2, [&](const Seat& seat) {
    Result<std::shared_ptr<Context>> context = Context::create({});
    ASSERT_TRUE(context.ok()) << context.status().text();
    Result<Met> met = meet_other(*context.value(), *room, seat);
    ASSERT_TRUE(met.ok()) << met.status().text();
    check(met.value());
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 1)
      for (;;) pause();
    Acquaintances acquaintances;
    Connections dead;
    EXPECT_EQ(acquaintances.known(kHost, dead).offered(), Attempts{});
    acquaintances.keep(met->by, kHost);
    seat.board.counter[0] = 2;
    EXPECT_TRUE(eventually([&] { return met->by[1]->dead() && met->by[2]->dead() && met->by[3]->dead(); }));
    EXPECT_EQ(acquaintances.known(kHost, dead).offered(), Attempts{});
    EXPECT_EQ(dead.size(), 3U);
  });
  ASSERT_TRUE(job.reached(0, 2));
  job.kill(1);
  job.finish();
}

}  // namespace
}  // namespace seto::testing
