// The connections that a context offers, and the one of several that two contexts use. The connections to one other process are
// real.

#include "src/core/connect/connection_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "src/core/connect/context.h"
#include "tests/support/other_context.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_memory_ranks.h"

namespace seto::testing {
namespace {

constexpr std::uint64_t kInitMs = 10'000;
constexpr std::size_t kLimit = 2;
constexpr const char* kHost = "here";

struct Met {
  PeerContext peer;
  Connections by;  // by the number of the attempt; null for 0
};

Result<Met> meet_other(Context& context, SharedMemoryRanks& room, const Seat& seat) {
  const Deadline until = Deadline::after_ms(kInitMs);
  SETO_ASSIGN(AttemptOfTwo two, attempt_of_two({&context}, room, seat, until));
  Attempt& attempt = two.attempt;
  const std::uint32_t other = 1 - attempt.own;
  const Place& place = two.places[other];
  Met met;
  met.peer.process = place.process;
  met.peer.context = place.context;
  met.by.push_back(nullptr);
  for (attempt.id = 1; attempt.id <= 3; ++attempt.id) {
    SETO_ASSIGN(const Connections made, connect_over_memory(context, attempt, until));
    met.by.push_back(made[other]);
  }
  return met;
}

void check(const Met& met) {
  ConnectionCache connection_cache(kLimit);
  Connections dead;
  EXPECT_EQ(connection_cache.known(kHost, dead).offered(), Attempts{});
  connection_cache.keep({nullptr, met.by[3]}, kHost);
  connection_cache.keep({met.by[2]}, kHost);
  const KnownConnections two = connection_cache.known(kHost, dead);
  EXPECT_EQ(two.offered(), (Attempts{2, 3}));
  EXPECT_EQ(two.shared_with(met.peer, {1, 2, 3}), met.by[2]) << "the smallest number, in any order of arrival";
  EXPECT_EQ(two.shared_with(met.peer, {1, 3}), met.by[3]);
  EXPECT_EQ(two.shared_with(met.peer, {1}), nullptr);
  EXPECT_EQ(two.shared_with({met.peer.process, met.peer.context + 1, 0}, {2, 3}), nullptr) << "another context's";
  EXPECT_EQ(two.shared_with({met.peer.process + "x", met.peer.context, 0}, {2, 3}), nullptr) << "another process's";

  connection_cache.keep({met.by[1]}, kHost);
  const KnownConnections newest = connection_cache.known(kHost, dead);
  EXPECT_EQ(newest.offered(), (Attempts{1, 2})) << "the least recently used one is left out";
  EXPECT_EQ(newest.shared_with(met.peer, {3}), nullptr) << "not offered";
  connection_cache.keep({met.by[3]}, kHost);
  EXPECT_EQ(connection_cache.known(kHost, dead).offered(), (Attempts{1, 3})) << "used again";
  EXPECT_EQ(two.offered(), (Attempts{2, 3})) << "an offer stays as it was made";
  EXPECT_TRUE(dead.empty());
  EXPECT_GT(met.by[1].use_count(), 1);

  connection_cache.keep({met.by[2]}, "elsewhere");
  EXPECT_EQ(connection_cache.known(kHost, dead).offered(), (Attempts{1, 3})) << "it may belong to another medium";
  EXPECT_EQ(connection_cache.known("elsewhere", dead).offered(), Attempts{});
  EXPECT_EQ(dead.size(), 3U);
}

TEST(ConnectionCache, OffersConnectionsThatBothEndsMayUse) {
  const Shared<SharedMemoryRanks> room;
  Job job(Kind::processes, 2, [&](const Seat& seat) {
    Result<std::shared_ptr<Context>> context = Context::create({});
    ASSERT_TRUE(context.ok()) << context.status().text();
    Result<Met> met = meet_other(*context.value(), *room, seat);
    ASSERT_TRUE(met.ok()) << met.status().text();
    check(met.value());
    ASSERT_TRUE(seat.meet(1));
    if (seat.rank == 1)
      for (;;) pause();
    ConnectionCache connection_cache;
    Connections dead;
    EXPECT_EQ(connection_cache.known(kHost, dead).offered(), Attempts{});
    connection_cache.keep(met->by, kHost);
    seat.board.counter[0] = 2;
    EXPECT_TRUE(eventually([&] { return met->by[1]->dead() && met->by[2]->dead() && met->by[3]->dead(); }));
    EXPECT_EQ(connection_cache.known(kHost, dead).offered(), Attempts{});
    EXPECT_EQ(dead.size(), 3U);
  });
  ASSERT_TRUE(job.reached(0, 2));
  job.kill(1);
  job.finish();
}

}  // namespace
}  // namespace seto::testing
