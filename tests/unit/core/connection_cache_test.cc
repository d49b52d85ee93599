// Which connections a context offers again, and that both ends of one choose the same.

#include "src/core/connect/connection_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "tests/support/seed.h"
#include "tests/unit/core/scripted_ranks.h"

namespace seto::testing {
namespace {

constexpr const char* kHost = "here";

std::shared_ptr<ScriptedConnection> connection(const std::string& process, AttemptId attempt, Reach reach = Reach::host) {
  return std::make_shared<ScriptedConnection>(PeerContext{process, 1, attempt}, reach);
}

PeerContext peer(const std::string& process, ContextId context = 1) { return {process, context, 0}; }

TEST(ConnectionCache, OffersNothingAtFirst) {
  ConnectionCache cache;
  Connections dropped;
  const KnownConnections known = cache.known(kHost, dropped);
  EXPECT_TRUE(known.offered().empty());
  EXPECT_EQ(known.shared_with(peer("a"), {1, 2}), nullptr);
  EXPECT_TRUE(dropped.empty());
}

TEST(ConnectionCache, SkipsThisRankAndContextsOfTheSameProcess) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  cache.keep({nullptr, connection("a", 1, Reach::process)}, kHost);
  EXPECT_TRUE(cache.known(kHost, dropped).offered().empty());
}

TEST(ConnectionCache, KeepsAConnectionOnceHoweverOftenItIsUsed) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  const auto one = connection("a", 1);
  for (int use = 0; use < 3; ++use) cache.keep({one}, kHost);
  EXPECT_EQ(one.use_count(), 2);
}

TEST(ConnectionCache, DropsConnectionsWhosePeerHasDiedAndOffersTheirAttemptNoMore) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  const auto lives = connection("a", 1);
  const auto dies = connection("b", 2);
  cache.keep({lives, dies}, kHost);
  dies->is_dead = true;
  const KnownConnections known = cache.known(kHost, dropped);
  EXPECT_EQ(known.offered(), Attempts{1});
  EXPECT_EQ(dropped, Connections{dies}) << "for the caller to close";
  EXPECT_EQ(known.shared_with(peer("b"), {2}), nullptr);
}

// An attempt of several connections is still offered while one of them lives: the pairs of the dead one are not asked for.
TEST(ConnectionCache, OffersAnAttemptWhileOneOfItsConnectionsLives) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  const auto dies = connection("a", 1);
  const auto lives = connection("b", 1);
  cache.keep({dies, lives}, kHost);
  dies->is_dead = true;
  const KnownConnections known = cache.known(kHost, dropped);
  EXPECT_EQ(known.offered(), Attempts{1});
  EXPECT_EQ(known.shared_with(peer("b"), {1}), lives);
  EXPECT_EQ(known.shared_with(peer("a"), {1}), nullptr);
}

TEST(ConnectionCache, OffersNothingOlderThanItsHostName) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  const auto old = connection("a", 1);
  cache.keep({old}, kHost);
  EXPECT_TRUE(cache.known("elsewhere", dropped).offered().empty());
  EXPECT_EQ(dropped, Connections{old});
  cache.keep({connection("a", 2)}, kHost);
  EXPECT_TRUE(cache.known("elsewhere", dropped).offered().empty()) << "made under a name that is not stated any more";
}

TEST(ConnectionCache, HoldsWhatItAnnouncedUntilAllHaveDecided) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  const auto one = connection("a", 1);
  cache.keep({one}, kHost);
  const KnownConnections announced = cache.known(kHost, dropped);
  one->is_dead = true;
  (void)cache.known(kHost, dropped);
  dropped.clear();
  EXPECT_EQ(one.use_count(), 2) << "the announcement keeps it open";
  EXPECT_EQ(announced.shared_with(peer("a"), {1}), one) << "the peer gets the same answer";
}

TEST(ConnectionCache, LeavesOutTheAttemptsThatWereUsedLongestAgo) {
  constexpr std::size_t kLimit = 3;
  ConnectionCache cache(kLimit);
  Connections dropped;
  (void)cache.known(kHost, dropped);
  std::map<AttemptId, std::shared_ptr<ScriptedConnection>> made;
  for (AttemptId attempt = 1; attempt <= 5; ++attempt) cache.keep({made[attempt] = connection("a", attempt)}, kHost);
  EXPECT_EQ(cache.known(kHost, dropped).offered(), (Attempts{3, 4, 5}));
  cache.keep({made[1]}, kHost);
  const KnownConnections known = cache.known(kHost, dropped);
  EXPECT_EQ(known.offered(), (Attempts{1, 4, 5}));
  EXPECT_EQ(known.shared_with(peer("a"), {1, 2, 3}), made[1]);
  EXPECT_EQ(known.shared_with(peer("a"), {2, 3}), nullptr) << "still open, but not offered";
}

TEST(ConnectionCache, NeedsTheSameProcessAndTheSameContext) {
  ConnectionCache cache;
  Connections dropped;
  (void)cache.known(kHost, dropped);
  cache.keep({connection("a", 1)}, kHost);
  const KnownConnections known = cache.known(kHost, dropped);
  EXPECT_NE(known.shared_with(peer("a"), {1}), nullptr);
  EXPECT_EQ(known.shared_with(peer("a", 2), {1}), nullptr);
  EXPECT_EQ(known.shared_with(peer("A"), {1}), nullptr);
  EXPECT_EQ(known.shared_with(peer(""), {1}), nullptr);
}

// Two contexts with any common history: each keeps what the other kept, in another order, and may have lost the oldest.
TEST(ConnectionCache, BothEndsChooseTheConnectionOfTheSameAttempt) {
  std::mt19937_64 random(chosen_seed());
  for (int round = 0; round < 300; ++round) {
    ConnectionCache left(1 + random() % 4);
    ConnectionCache right(1 + random() % 4);
    Connections dropped;
    (void)left.known(kHost, dropped);
    (void)right.known(kHost, dropped);
    std::vector<AttemptId> attempts(6);
    for (AttemptId& attempt : attempts) attempt = 1 + random() % 20;
    for (const AttemptId attempt : attempts) left.keep({connection("right", attempt), connection("third", attempt)}, kHost);
    std::shuffle(attempts.begin(), attempts.end(), random);
    for (const AttemptId attempt : attempts) right.keep({connection("left", attempt)}, kHost);
    const KnownConnections from_left = left.known(kHost, dropped);
    const KnownConnections from_right = right.known(kHost, dropped);
    const auto one = from_left.shared_with(peer("right"), from_right.offered());
    const auto other = from_right.shared_with(peer("left"), from_left.offered());
    ASSERT_EQ(one == nullptr, other == nullptr) << "round " << round;
    if (one != nullptr) {
      EXPECT_EQ(one->peer().attempt, other->peer().attempt) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace seto::testing
