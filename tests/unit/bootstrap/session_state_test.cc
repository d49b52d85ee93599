// A session without its sockets: who may join, which error ends it for all, and what is announced.

#include "src/bootstrap/rendezvous/session_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/rendezvous/sessions.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kLongMs = 600'000;
constexpr int kForever = std::numeric_limits<int>::max();

Hello hello(Rank rank, int size, std::uint64_t remaining_ms = kLongMs) {
  Hello result;
  result.rank = rank;
  result.size = size;
  result.remaining_ms = remaining_ms;
  return result;
}

class ThreeJoin : public ::testing::Test {
 protected:
  void join_all() {
    for (Rank rank = 0; rank < 3; ++rank) ASSERT_TRUE(state_.admit(hello(rank, 3)).ok());
    ASSERT_TRUE(state_.take_announcement().has_value());
  }
  void contribute(Rank rank, const std::string& message, std::uint64_t remaining_ms = kLongMs) {
    state_.contribute(rank, {remaining_ms, message});
  }
  std::string refusal(const Hello& one) { return std::string(state_.admit(one).text()); }
  std::string broken() { return std::string(state_.broken().text()); }

  SessionState state_{Deadline::never()};
};

TEST_F(ThreeJoin, IsFullAndReadyWhenTheLastRankHasJoined) {
  for (const Rank rank : {2, 0}) {
    EXPECT_TRUE(state_.admit(hello(rank, 3)).ok());
    EXPECT_FALSE(state_.full());
    EXPECT_FALSE(state_.take_announcement().has_value());
  }
  EXPECT_TRUE(state_.admit(hello(1, 3)).ok());
  EXPECT_TRUE(state_.full());
  EXPECT_EQ(state_.size(), 3);
  EXPECT_EQ(state_.take_announcement()->kind, FrameKind::ready);
  EXPECT_FALSE(state_.take_announcement().has_value()) << "announced once";
}

TEST_F(ThreeJoin, AnotherSizeEndsTheSessionForAllAndNamesBothRanks) {
  ASSERT_TRUE(state_.admit(hello(2, 3)).ok());
  EXPECT_EQ(refusal(hello(0, 4)), "rank 0 says that the communicator has 4 ranks, rank 2 says 3");
  EXPECT_EQ(state_.take_announcement()->kind, FrameKind::failure);
  EXPECT_EQ(refusal(hello(1, 3)), broken()) << "a late rank gets the reason of the others";
}

TEST_F(ThreeJoin, ARankOutOfRangeOrJoinedTwiceIsNamed) {
  EXPECT_EQ(refusal(hello(3, 3)), "rank 3 is out of range: the communicator has 3 ranks, 0 to 2");
  SessionState negative{Deadline::never()};
  EXPECT_EQ(negative.admit(hello(-1, 3)).text(), "rank -1 is out of range: the communicator has 3 ranks, 0 to 2");
  SessionState twice{Deadline::never()};
  ASSERT_TRUE(twice.admit(hello(1, 3)).ok());
  EXPECT_THAT(std::string(twice.admit(hello(1, 3)).text()), HasSubstr("rank 1 joined twice: give each rank to one process"));
}

TEST(SessionSize, IsLimited) {
  for (const int size : {0, -1, kBootstrapRankLimit + 1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    SessionState state{Deadline::never()};
    const Status refused = state.admit(hello(0, size));
    EXPECT_EQ(refused.code(), Code::invalid_argument) << size;
    EXPECT_THAT(std::string(refused.text()), HasSubstr("communicator has " + std::to_string(size)));
  }
  SessionState largest{Deadline::never()};
  EXPECT_TRUE(largest.admit(hello(kBootstrapRankLimit - 1, kBootstrapRankLimit)).ok());
}

// The ranks of a full session must not fail because another process uses their id.
TEST_F(ThreeJoin, ARankTooManyIsRefusedAndHarmsNobody) {
  join_all();
  EXPECT_THAT(refusal(hello(0, 3)), HasSubstr("rank 0 joined by a unique id that a communicator of 3 ranks already uses"));
  EXPECT_TRUE(state_.broken().ok());
  EXPECT_FALSE(state_.take_announcement().has_value());
}

TEST_F(ThreeJoin, ARoundGivesAllMessagesByRankWhateverTheirOrder) {
  join_all();
  for (int round = 0; round < 3; ++round) {
    contribute(2, "c");
    contribute(0, "");
    EXPECT_FALSE(state_.take_announcement().has_value());
    contribute(1, std::string("b\0b", 3));
    const auto result = state_.take_announcement();
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->kind, FrameKind::result);
    EXPECT_THAT(result->messages, ElementsAre("", std::string("b\0b", 3), "c"));
  }
}

TEST_F(ThreeJoin, AContributionOutOfTurnEndsTheSession) {
  ASSERT_TRUE(state_.admit(hello(0, 3)).ok());
  contribute(0, "early");
  EXPECT_EQ(broken(), "rank 0 sent a contribution out of turn");
  SessionState twice{Deadline::never()};
  for (Rank rank = 0; rank < 2; ++rank) ASSERT_TRUE(twice.admit(hello(rank, 2)).ok());
  twice.contribute(1, {kLongMs, "one"});
  twice.contribute(1, {kLongMs, "two"});
  EXPECT_EQ(twice.broken().text(), "rank 1 sent a contribution out of turn");
}

TEST_F(ThreeJoin, AMessageOverTheLimitIsNamedWithItsSize) {
  join_all();
  const std::string most(kGatherMessageLimit, 'm');
  contribute(0, most);
  EXPECT_TRUE(state_.broken().ok()) << "at the limit";
  contribute(1, most + "m");
  EXPECT_THAT(broken(), HasSubstr("rank 1: a bootstrap message of 1048577 bytes"));
  EXPECT_EQ(state_.broken().code(), Code::invalid_argument);
}

TEST_F(ThreeJoin, ARankThatLeavesBeforeAllHaveJoinedEndsTheSession) {
  ASSERT_TRUE(state_.admit(hello(1, 3)).ok());
  state_.leave(1);
  EXPECT_EQ(broken(), "rank 1 left before all ranks had joined: its process ended or its init failed");
}

TEST_F(ThreeJoin, ARankThatLeavesInARoundEndsItUnlessItHasContributed) {
  join_all();
  contribute(0, "a");
  state_.leave(0);
  EXPECT_TRUE(state_.broken().ok()) << "its message is here";
  state_.leave(2);
  EXPECT_EQ(broken(), "rank 2 has left the rendezvous: its process ended or its init failed");
}

// Ranks leave between rounds when they need the rendezvous no more; a rank that then begins another round waits in vain.
TEST_F(ThreeJoin, ARoundAfterARankHasLeftNamesThatRank) {
  join_all();
  state_.leave(1);
  EXPECT_TRUE(state_.broken().ok());
  contribute(0, "a");
  EXPECT_EQ(broken(), "rank 1 has left the rendezvous: its process ended or its init failed");
}

TEST_F(ThreeJoin, IsServedWhenAllHaveJoinedAndLeft) {
  join_all();
  for (Rank rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(state_.served());
    state_.leave(rank);
  }
  EXPECT_TRUE(state_.served());
  EXPECT_TRUE(state_.broken().ok());
}

TEST_F(ThreeJoin, TheDeadlineOfAnyRankCountsAndNamesTheMissing) {
  ASSERT_TRUE(state_.admit(hello(1, 3, kLongMs)).ok());
  state_.look_at_deadline();
  EXPECT_TRUE(state_.broken().ok());
  EXPECT_GT(state_.remaining_ms(), 0);
  ASSERT_TRUE(state_.admit(hello(2, 3, 0)).ok());
  EXPECT_EQ(state_.remaining_ms(), 0);
  state_.look_at_deadline("a process with another secret tried to join");
  EXPECT_THAT(broken(), HasSubstr("rank 0 of 3 did not join before the deadline"));
  EXPECT_THAT(broken(), ::testing::EndsWith("; a process with another secret tried to join"));
  EXPECT_EQ(state_.broken().code(), Code::timeout);
}

TEST_F(ThreeJoin, AMissingRankIsStatedWithTheTimeWaitedInItsGrammar) {
  ASSERT_TRUE(state_.admit(hello(1, 3, 0)).ok());
  state_.look_at_deadline();
  EXPECT_THAT(broken(), ::testing::MatchesRegex("ranks 0 and 2 of 3 did not join before the deadline of the init "
                                                "\\(SETO_INIT_TIMEOUT_MS\\), in [0-9]+ ms; check whether they were started, and "
                                                "what they wrote"));
  SessionState two{Deadline::never()};
  ASSERT_TRUE(two.admit(hello(0, 2, 0)).ok());
  two.look_at_deadline();
  EXPECT_THAT(std::string(two.broken().text()), ::testing::EndsWith(" ms; check whether it was started, and what it wrote"));
}

// ---- members that wait long for others ----

TEST(LateWarning, NamesTheMissingRanksOnce) {
  SessionState state{Deadline::never(), 0};
  EXPECT_FALSE(state.take_late_warning()) << "no rank waits";
  ASSERT_TRUE(state.admit(hello(1, 3)).ok());
  EXPECT_EQ(state.remaining_ms(), 0);
  const std::optional<std::string> late = state.take_late_warning();
  ASSERT_TRUE(late);
  EXPECT_THAT(*late, ::testing::MatchesRegex("the init has waited [0-9]+ ms for ranks 0 and 2 of 3; check whether they were "
                                             "started, and what they wrote"));
  EXPECT_FALSE(state.take_late_warning());
  EXPECT_GT(state.remaining_ms(), 0);
}

TEST(LateWarning, IsNotGivenByASessionThatIsFullOrHasFailed) {
  SessionState full{Deadline::never(), 0};
  ASSERT_TRUE(full.admit(hello(0, 1)).ok());
  EXPECT_FALSE(full.take_late_warning());
  EXPECT_EQ(full.remaining_ms(), kForever);
  SessionState failed{Deadline::never(), 0};
  ASSERT_TRUE(failed.admit(hello(0, 2)).ok());
  failed.break_with(failure(Code::timeout, "late"));
  EXPECT_FALSE(failed.take_late_warning());
}

TEST(LateWarning, ComesAfterTenSeconds) {
  SessionState state{Deadline::never()};
  ASSERT_TRUE(state.admit(hello(0, 2)).ok());
  EXPECT_FALSE(state.take_late_warning());
  EXPECT_LE(state.remaining_ms(), 10'000);
}

TEST_F(ThreeJoin, ADeadlineInARoundNamesThoseWithoutAMessage) {
  join_all();
  contribute(1, "b", 0);
  state_.look_at_deadline("a hint about joining");
  EXPECT_THAT(broken(), HasSubstr("ranks 0 and 2 of 3 did not join"));
  EXPECT_EQ(broken().find("a hint about joining"), std::string::npos) << "all had joined";
}

TEST_F(ThreeJoin, WaitsForNothingBetweenRounds) {
  join_all();
  EXPECT_EQ(state_.remaining_ms(), kForever);
  contribute(0, "a", 0);
  EXPECT_EQ(state_.remaining_ms(), 0);
  contribute(1, "b");
  contribute(2, "c");
  EXPECT_EQ(state_.remaining_ms(), kForever);
  state_.look_at_deadline();
  EXPECT_TRUE(state_.broken().ok());
}

TEST(SessionNobodyJoins, EndsAtItsDeadline) {
  SessionState state{Deadline::after_ms(0)};
  state.look_at_deadline();
  EXPECT_EQ(state.broken().text(), "no rank joined before the deadline of the init");
}

TEST_F(ThreeJoin, OnlyTheFirstReasonCounts) {
  state_.break_with(failure(Code::timeout, "first"));
  state_.break_with(failure(Code::internal, "second"));
  EXPECT_EQ(broken(), "first");
  contribute(0, "a");
  EXPECT_EQ(broken(), "first");
}

// Ranks that were started wrongly must all learn of it, so the session stays until each has asked.
TEST_F(ThreeJoin, AwaitsLateRanksAfterAWrongStartOnly) {
  ASSERT_TRUE(state_.admit(hello(0, 3)).ok());
  EXPECT_FALSE(state_.admit(hello(0, 3)).ok());
  EXPECT_TRUE(state_.awaits_late_ranks());
  EXPECT_FALSE(state_.admit(hello(1, 3)).ok());
  EXPECT_FALSE(state_.awaits_late_ranks()) << "three asked";
  SessionState timed_out{Deadline::never()};
  ASSERT_TRUE(timed_out.admit(hello(0, 3)).ok());
  timed_out.break_with(failure(Code::timeout, "late"));
  EXPECT_FALSE(timed_out.awaits_late_ranks());
}

// Any order of joining, contributing and leaving: each round has every message once, and nothing follows a failure.
TEST(SessionHistories, GiveEveryMessageOnceOrOneFailure) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int history = 0; history < 500; ++history) {
    SessionState state{Deadline::never()};
    const int ranks = 1 + static_cast<int>(random() % 5);
    std::vector<int> rounds(static_cast<std::size_t>(ranks));
    int finished = 0;
    bool failed = false;
    for (Rank rank = 0; rank < ranks; ++rank) ASSERT_TRUE(state.admit(hello(rank, ranks)).ok());
    ASSERT_TRUE(state.take_announcement().has_value());
    for (int step = 0; step < 40 && !failed; ++step) {
      const auto rank = static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks));
      int& own = rounds[static_cast<std::size_t>(rank)];
      const bool out_of_turn = own > finished;
      if (out_of_turn && random() % 10 != 0) continue;
      const std::string message = std::to_string(rank) + ":" + std::to_string(own++);
      state.contribute(rank, {kLongMs, message});
      EXPECT_EQ(state.broken().ok(), !out_of_turn);
      const auto announced = state.take_announcement();
      failed = !state.broken().ok();
      if (!announced.has_value()) continue;
      ASSERT_EQ(announced->kind, failed ? FrameKind::failure : FrameKind::result);
      for (Rank one = 0; one < ranks && !failed; ++one)
        ASSERT_EQ(announced->messages.at(static_cast<std::size_t>(one)), std::to_string(one) + ":" + std::to_string(finished));
      ++finished;
    }
  }
}

TEST(Sessions, OfAnIdForOneCommunicatorAreOne) {
  Sessions sessions(UniqueId::Serves::communicator, Deadline::never());
  Session* const only = sessions.find(hello(0, 2)).value();
  Hello second = hello(1, 2);
  second.number = 5;  // whatever a rank says
  EXPECT_EQ(sessions.find(second).value(), only);
  sessions.forget(0);
  EXPECT_THAT(std::string(sessions.find(hello(0, 2)).status().text()), HasSubstr("which has ended"));
}

TEST(Sessions, OfAJobAreFoundByTheNumberOfTheInit) {
  Sessions sessions(UniqueId::Serves::job, Deadline::never());
  Hello one = hello(0, 2);
  Hello other = hello(1, 2);
  Session* const first = sessions.find(one).value();
  EXPECT_EQ(sessions.find(other).value(), first);
  other.number = 1;
  EXPECT_NE(sessions.find(other).value(), first);
  EXPECT_EQ(sessions.open().size(), 2U);
}

TEST(Sessions, RefuseARankTooManyByTheInitThatItJoined) {
  Sessions sessions(UniqueId::Serves::job, Deadline::never());
  Hello one = hello(0, 1);
  one.number = 3;
  ASSERT_TRUE(sessions.find(one).value()->state.admit(one).ok());
  const auto refused = sessions.find(one);
  EXPECT_EQ(refused.status().code(), Code::invalid_usage);
  EXPECT_THAT(std::string(refused.status().text()),
              HasSubstr("rank 0 joined init 4 of this job, which already has its 1 ranks: another job uses the same root"));
}

TEST(Sessions, KeepTheReasonOfAFailedInitForRanksThatComeLate) {
  Sessions sessions(UniqueId::Serves::job, Deadline::never());
  Session* const failed = sessions.find(hello(0, 2)).value();
  failed->state.break_with(failure(Code::remote_error, "rank 0 left"));
  sessions.forget(0);
  EXPECT_EQ(sessions.find(hello(1, 2)).status().text(), "rank 0 left");
  EXPECT_EQ(sessions.open().size(), 0U);
  sessions.forget(0);
  sessions.forget(77);  // nothing is there to forget
  EXPECT_EQ(sessions.find(hello(1, 2)).status().text(), "rank 0 left");
}

TEST(Sessions, KnowAnInitThatEndedLongAgoAsEnded) {
  Sessions sessions(UniqueId::Serves::job, Deadline::never());
  Hello one = hello(0, 1);
  for (one.number = 0; one.number < 3000; ++one.number) {
    ASSERT_TRUE(sessions.find(one).ok());
    sessions.forget(one.number);
  }
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1500}, std::uint64_t{2999}}) {
    one.number = number;
    EXPECT_THAT(std::string(sessions.find(one).status().text()),
                AllOf(HasSubstr("joined init " + std::to_string(number + 1)), HasSubstr(" of this job, which has ended")));
  }
}

TEST(Sessions, AreLimited) {
  Sessions sessions(UniqueId::Serves::job, Deadline::never());
  Hello one = hello(0, 2);
  for (one.number = 0; one.number < 1024; ++one.number) ASSERT_TRUE(sessions.find(one).ok());
  EXPECT_EQ(sessions.find(one).status().text(), "rank 0: 1024 inits by one id are under way already");
  one.number = 5;
  EXPECT_TRUE(sessions.find(one).ok()) << "those that exist are found";
}

}  // namespace
}  // namespace seto
