// Why an operation cannot end well: whom a rank names, in which words, and what it tells the other ranks.

#include "src/core/communicator/peer_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/core/call/call_summary.h"
#include "src/core/progress/call_deadline.h"
#include "tests/unit/core/scripted.h"
#include "tests/unit/core/scripted_ranks.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

// The note of an all_reduce of that many floats.
Note all_reduce(std::uint64_t operation, std::uint64_t count = 8) {
  Note note{operation, static_cast<std::uint32_t>(count), 0, {}};
  note.words[0] = static_cast<std::uint64_t>(DataType::float32) << 8;
  note.words[1] = count;
  return note;
}

Note rejected(std::uint64_t operation, std::string_view reason) {
  Note note{operation, 0, static_cast<std::uint32_t>(Code::invalid_argument), {}};
  put_reason(note, reason);
  return note;
}

class QueuedCall final : public Task {
 public:
  explicit QueuedCall(Status doomed) : doomed_(std::move(doomed)) {}
  Step advance() override { return Step::blocked; }
  bool inspect() override { return false; }
  [[nodiscard]] Status in_vain() const override { return doomed_; }

 private:
  Status doomed_;
};

class FailuresOfThree : public ::testing::Test {
 protected:
  // Operation `number` is under way on all ranks, and all have completed those before.
  void under_way(std::uint64_t number) {
    while (order_.issued() < number) order_.issue();
    while (order_.begun() < number) {
      if (order_.begun() > order_.done()) order_.complete(order_.done() + 1);
      order_.begin(all_reduce(order_.begun() + 1));
    }
    for (Rank rank = 1; rank < kRanks; ++rank) {
      ranks_.rank(rank).completed = number - 1;
      ranks_.rank(rank).notes[number] = all_reduce(number);
    }
  }
  std::string look() { return std::string(failures_.look_around(all_reduce(order_.begun())).text()); }
  // The reason that the other ranks were told.
  std::string told() { return ranks_.rank(0).explanation; }

  ScriptedRanks ranks_{kRanks};
  std::shared_ptr<Context> context_ = Context::create(Config{}).value();
  Members members_{ranks_.connected()};
  OperationOrder order_{members_};
  QueuedTasks queued_;
  Observability observability_;
  PeerFailures failures_{{members_, order_, queued_, *context_, observability_}};
};

TEST_F(FailuresOfThree, NothingIsWrongWhileAllTakePart) {
  under_way(3);
  EXPECT_EQ(look(), "");
  EXPECT_FALSE(failures_.failed());
  EXPECT_FALSE(failures_.failed_anywhere());
  EXPECT_TRUE(failures_.check_notes(all_reduce(3)).ok());
  EXPECT_EQ(ranks_.rank(0).fate.reason, 0U);
}

TEST_F(FailuresOfThree, OnlyTheFirstReasonIsKeptAndTold) {
  failures_.fail(failure(Code::timeout, "too late"), 2);
  failures_.fail(failure(Code::aborted, "aborted"), 0);
  EXPECT_EQ(failures_.first().text(), "too late");
  EXPECT_EQ(told(), "too late");
  EXPECT_EQ(ranks_.rank(0).fate.reason, static_cast<std::uint32_t>(Code::timeout));
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 2U);
  EXPECT_NE(observability_.failed_at_us(), 0U);
}

// The steps of a failure need memory, and none keeps the others from being done.
TEST_F(FailuresOfThree, WithoutMemoryForItsTextAFailureIsToldWithoutIt) {
  ranks_.group->missing_explanations = 1;
  failures_.fail(failure(Code::unavailable, "no memory"), 2);
  EXPECT_EQ(failures_.first().text(), "no memory");
  EXPECT_EQ(told(), "");
  EXPECT_EQ(ranks_.rank(0).fate.reason, static_cast<std::uint32_t>(Code::unavailable));
  EXPECT_NE(observability_.failed_at_us(), 0U);
}

TEST_F(FailuresOfThree, WithoutMemoryToTellItAFailureIsToldLater) {
  ranks_.group->missing_departures = 4;
  failures_.fail(failure(Code::unavailable, "no memory"), 2);
  EXPECT_TRUE(failures_.failed());
  EXPECT_EQ(failures_.first().text(), "no memory");
  EXPECT_NE(observability_.failed_at_us(), 0U);
  EXPECT_FALSE(failures_.tell_peers());
  EXPECT_TRUE(failures_.failed_anywhere());
  failures_.check_peers();
  EXPECT_EQ(ranks_.rank(0).fate.reason, 0U) << "there was no memory yet";
  failures_.fail(failure(Code::aborted, "aborted"), 0);
  EXPECT_EQ(ranks_.rank(0).fate.reason, static_cast<std::uint32_t>(Code::unavailable)) << "the first one is told";
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 2U);
  EXPECT_EQ(told(), "no memory");
  EXPECT_TRUE(failures_.tell_peers());
}

TEST_F(FailuresOfThree, ADeadRankIsNamedWithItsHostAndTheOperation) {
  under_way(3);
  ranks_.connection[2]->is_dead = true;
  EXPECT_EQ(look(), "operation 3 (all_reduce of 8 float, sum): rank 2 (host-2:17): its process has ended");
  EXPECT_EQ(told(), std::string(failures_.first().text()));
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 2U);
}

TEST_F(FailuresOfThree, ARankThatDiedAfterTheOperationIsNoLossForIt) {
  under_way(3);
  ranks_.rank(2).completed = 3;
  ranks_.connection[2]->is_dead = true;
  EXPECT_EQ(look(), "");
}

// A rank that left because of another one dies later: its own report counts, not its death.
TEST_F(FailuresOfThree, TheReportOfARankThatLeftCountsMoreThanItsDeath) {
  under_way(3);
  ranks_.connection[2]->is_dead = true;
  ranks_.rank(2).fate = fate(Code::remote_error, 1);
  EXPECT_EQ(look(), "operation 3 (all_reduce of 8 float, sum): rank 2 has left the communicator because of rank 1");
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 1U) << "all ranks blame the same one";
}

TEST_F(FailuresOfThree, AFateThatBlamesNoRankBlamesTheOneThatLeft) {
  under_way(3);
  ranks_.rank(2).fate = fate(Code::remote_error, 1'000'000);
  EXPECT_EQ(look(), "operation 3 (all_reduce of 8 float, sum): rank 2 has left the communicator");
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 2U);
}

TEST_F(FailuresOfThree, TheWordsOfARankThatLeftBecomeThoseOfAll) {
  under_way(3);
  ranks_.rank(1).fate = fate(Code::timeout, 1);
  ranks_.rank(1).explanation = "operation 3 did not end within 5 ms";
  EXPECT_EQ(look(), "operation 3 did not end within 5 ms");
  EXPECT_EQ(told(), "operation 3 did not end within 5 ms");
}

TEST_F(FailuresOfThree, ADeadlineElsewhereWithoutWordsNamesTheRanksThatNeverCame) {
  under_way(3);
  ranks_.rank(1).fate = fate(Code::timeout, 1);
  ranks_.rank(2).notes.clear();
  EXPECT_THAT(look(), ::testing::EndsWith("rank 1 has left the communicator at a deadline: rank 2 never came"));
}

TEST_F(FailuresOfThree, ARejectedCallEndsTheOperationAndNotTheCommunicator) {
  under_way(3);
  ranks_.rank(2).notes[3] = rejected(3, "root: 9 is not one of the ranks");
  EXPECT_EQ(look(), "operation 3: rank 2 rejected its call (root: 9 is not one of the ranks), so the call ends on every rank");
  EXPECT_FALSE(failures_.failed());
  EXPECT_EQ(told(), "");
}

// A rank that rejected a call may leave at once; its rejection is what happened to this operation.
TEST_F(FailuresOfThree, ARejectionIsSeenBeforeTheDepartureOfItsRank) {
  under_way(3);
  ranks_.rank(2).notes[3] = rejected(3, "op");
  ranks_.rank(2).fate = fate(Code::invalid_usage, 2);
  EXPECT_THAT(look(), HasSubstr("rank 2 rejected its call (op)"));
  EXPECT_FALSE(failures_.failed());
}

TEST_F(FailuresOfThree, AnotherCallIsStatedFromBothSides) {
  under_way(3);
  ranks_.rank(1).notes[3] = all_reduce(3, 9);
  EXPECT_EQ(look(), "operation 3: rank 1 calls all_reduce of 9 float, sum, but rank 0 calls all_reduce of 8 float, sum");
  EXPECT_TRUE(failures_.failed());
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 1U);
}

// With the same notes each rank names the same two: here rank 0 does not differ from the first rank that it meets.
TEST_F(FailuresOfThree, EachRankNamesTheSameTwo) {
  under_way(3);
  for (Rank rank = 1; rank < kRanks; ++rank) ranks_.rank(rank).notes[3] = all_reduce(3, 9);
  ScriptedRanks second(kRanks);
  for (Rank rank = 0; rank < kRanks; ++rank) second.rank(rank).notes[3] = all_reduce(3, rank == 0 ? 8 : 9);
  ConnectedRanks connected = second.connected();
  connected.rank = 2;
  connected.connections = {connected.connections[1], connected.connections[2], nullptr};
  const Members members(std::move(connected));
  PeerFailures failures({members, order_, queued_, *context_, observability_});
  EXPECT_EQ(look(), "operation 3: rank 1 calls all_reduce of 9 float, sum, but rank 0 calls all_reduce of 8 float, sum");
  EXPECT_EQ(failures.look_around(all_reduce(3, 9)).text(), failures_.first().text());
}

// Rank 1 comes last. Without its note, rank 2 would be named.
TEST_F(FailuresOfThree, TheNotesOfAllRanksAreAwaitedBeforeTwoAreNamed) {
  under_way(3);
  ranks_.rank(1).notes.clear();
  ranks_.rank(2).notes[3] = all_reduce(3, 9);
  EXPECT_EQ(look(), "");
  ranks_.rank(1).notes[3] = all_reduce(3, 9);
  EXPECT_THAT(look(), HasSubstr("rank 1 calls all_reduce of 9 float, sum, but rank 0 calls"));
}

TEST_F(FailuresOfThree, ARankThatNeverComesIsNotAwaitedForEver) {
  under_way(3);
  ranks_.rank(1).notes.clear();
  ranks_.rank(2).notes[3] = all_reduce(3, 9);
  ASSERT_TRUE(eventually([&] { return !look().empty(); }));
  EXPECT_THAT(failures_.first().text(), HasSubstr("rank 2 calls all_reduce of 9 float, sum, but rank 0 calls"));
}

TEST_F(FailuresOfThree, ADifferenceIsTheReasonWhereADeadlinePassesFirst) {
  under_way(3);
  ranks_.rank(1).notes.clear();
  ranks_.rank(2).notes[3] = all_reduce(3, 9);
  EXPECT_EQ(failures_.fail_overdue(all_reduce(3), CallDeadline(1, Config{}), "waits").code(), Code::remote_error);
}

// Rank 1 knew only the calls of ranks 1 and 2 when it failed.
TEST_F(FailuresOfThree, TheTwoThatAnotherRankHasNamedAreNamed) {
  under_way(3);
  ranks_.rank(2).notes[3] = all_reduce(3, 9);
  ranks_.rank(1).fate = fate(Code::remote_error, 2);
  ranks_.rank(1).explanation =
      "operation 3: rank 2 calls all_reduce of 9 float, sum, but rank 1 calls all_reduce of 8 float, sum";
  EXPECT_EQ(look(), ranks_.rank(1).explanation);
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 2U);
}

TEST_F(FailuresOfThree, TheSameCallPlannedDifferentlyNamesTheSettings) {
  under_way(3);
  ++ranks_.rank(1).notes[3].digest;
  EXPECT_EQ(look(),
            "operation 3: ranks 0 and 1 call all_reduce of 8 float, sum, but plan it differently: parts, algorithm, codec, slice "
            "bytes and slot depth (SETO_* variables too) must be the same on all ranks");
}

TEST_F(FailuresOfThree, ADamagedNoteIsSaidToBeDamaged) {
  under_way(3);
  ranks_.rank(1).notes[3].digest = 0;
  ranks_.rank(1).notes[3].words[0] = ~std::uint64_t{0};
  EXPECT_THAT(look(), HasSubstr("rank 1 calls no collective: its note is damaged, but rank 0 calls "));
  ranks_.rank(1).notes[3] = rejected(3, "\x1b[31mred\n");
  EXPECT_THAT(failures_.check_notes(all_reduce(3)).text(), HasSubstr("(?[31mred?)")) << "printable ASCII only";
}

// A rank that only sends has completed the broadcast before the other one called something else. The death that follows is a
// consequence.
TEST_F(FailuresOfThree, AnEarlierDisagreementIsTheReasonForALaterLoss) {
  under_way(3);
  ranks_.rank(1).notes[2] = all_reduce(2, 9);
  ranks_.connection[1]->is_dead = true;
  EXPECT_EQ(look(), "operation 2: rank 1 calls all_reduce of 9 float, sum, but rank 0 calls all_reduce of 8 float, sum");
}

TEST_F(FailuresOfThree, AnEarlierRejectionIsNoReasonForALaterLoss) {
  under_way(3);
  ranks_.rank(1).notes[2] = rejected(2, "op");
  ranks_.connection[1]->is_dead = true;
  EXPECT_THAT(look(), HasSubstr("operation 3 (all_reduce of 8 float, sum): rank 1 (host-1:17)"));
}

TEST_F(FailuresOfThree, AFailureOfTheStreamsFailsTheCommunicator) {
  under_way(1);
  ranks_.group->failed = failure(Code::remote_error, "rank 2: a frame of no stream");
  EXPECT_EQ(look(), "rank 2: a frame of no stream");
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 0U);
}

TEST_F(FailuresOfThree, AnOverdueOperationNamesTheLimitTheMissingAndTheWait) {
  under_way(3);
  ranks_.rank(2).notes.clear();
  const Status reason = failures_.fail_overdue(all_reduce(3), CallDeadline(250, Config{}), "waits for slice 1 of 4");
  EXPECT_EQ(reason.code(), Code::timeout);
  EXPECT_EQ(
      reason.text(),
      "operation 3 (all_reduce of 8 float, sum) did not end within 250 ms (its deadlineMs): rank 2 never came; rank 0 waits "
      "for slice 1 of 4");
}

TEST_F(FailuresOfThree, AnOverdueOperationToWhichAllCameSaysSo) {
  under_way(3);
  ranks_.rank(2).notes.clear();
  ranks_.rank(2).completed = 3;  // and its note was overwritten since
  EXPECT_THAT(failures_.fail_overdue(all_reduce(3), CallDeadline(0, Config{}), "waits").text(),
              ::testing::EndsWith(" ms (SETO_OPERATION_TIMEOUT_MS): all ranks came; rank 0 waits"));
}

TEST_F(FailuresOfThree, ACallThatBeginsTakesOverTheFailureOfAPeer) {
  ranks_.rank(1).fate = fate(Code::invalid_usage, 1);
  EXPECT_FALSE(failures_.failed_anywhere()) << "it left without a failure, and this operation may not need it";
  ranks_.rank(2).fate = fate(Code::remote_error, 1);
  EXPECT_TRUE(failures_.failed_anywhere());
  EXPECT_EQ(failures_.first().text(), "rank 2 has left the communicator because of rank 1");
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 1U);
}

TEST_F(FailuresOfThree, BetweenCallsADeathIsALossUnlessTheRankHadLeftWell) {
  under_way(2);
  order_.complete(order_.done() + 1);
  ASSERT_EQ(order_.done(), order_.begun());
  for (Rank rank = 1; rank < kRanks; ++rank) ranks_.rank(rank).completed = 2;
  failures_.check_peers();
  EXPECT_FALSE(failures_.failed());
  ranks_.rank(1).fate = fate(Code::invalid_usage, 1);
  ranks_.connection[1]->is_dead = true;
  failures_.check_peers();
  EXPECT_FALSE(failures_.failed()) << "it destroyed its communicator and exited";
  ranks_.connection[2]->is_dead = true;
  ranks_.rank(2).silent = false;
  failures_.check_peers();
  EXPECT_FALSE(failures_.failed()) << "what it sent before may still arrive";
  ranks_.rank(2).silent = true;
  failures_.check_peers();
  EXPECT_EQ(failures_.first().text(), "rank 2 (host-2:17): its process has ended");
}

TEST_F(FailuresOfThree, AnOperationUnderWayLooksAroundItself) {
  under_way(2);
  ranks_.connection[2]->is_dead = true;
  failures_.check_peers();
  EXPECT_FALSE(failures_.failed());
}

TEST_F(FailuresOfThree, AQueuedOperationThatCanNeverBeginNamesTheRankThatLeft) {
  order_.issue();
  failures_.check_queued_tasks();
  EXPECT_FALSE(failures_.failed());
  ranks_.rank(2).fate = fate(Code::invalid_usage, 2);
  failures_.check_queued_tasks();
  EXPECT_EQ(failures_.first().text(), "operation 1 cannot begin any more: rank 2 has left the communicator");
  EXPECT_EQ(failures_.first().code(), Code::remote_error);
}

TEST_F(FailuresOfThree, AQueuedTaskThatCannotEndWellFailsTheCommunicator) {
  QueuedCall doomed(failure(Code::remote_error, "rank 1 will send nothing"));
  queued_.add(doomed);
  failures_.check_queued_tasks();
  EXPECT_EQ(failures_.first().text(), "rank 1 will send nothing");
  EXPECT_EQ(ranks_.rank(0).fate.culprit, 0U);
}

TEST(QueuedTasksOfAStream, GoToTheFirstThatTakesThem) {
  QueuedTasks queued;
  QueuedCall claimed{Status()};
  QueuedCall ended{Status()};
  queued.add(claimed);
  queued.add(ended);
  EXPECT_EQ(queued.under_way(), 2U);
  EXPECT_TRUE(queued.claim(claimed));
  EXPECT_FALSE(queued.claim(claimed)) << "taken already";
  queued.end_all(failure(Code::aborted, "aborted"));
  EXPECT_EQ(ended.status().text(), "aborted");
  EXPECT_FALSE(claimed.ended()) << "the stream drives it";
  EXPECT_FALSE(queued.claim(ended)) << "its communicator may be destroyed";
  EXPECT_EQ(queued.under_way(), 1U);
  queued.task_ended();
  EXPECT_EQ(queued.under_way(), 0U);
}

TEST(QueuedTasksOfAStream, NameAFailureThatDoomsAnyOfThem) {
  QueuedTasks queued;
  QueuedCall well{Status()};
  QueuedCall doomed(failure(Code::remote_error, "doomed"));
  queued.add(well);
  EXPECT_TRUE(queued.in_vain().ok());
  queued.add(doomed);
  EXPECT_EQ(queued.in_vain().text(), "doomed");
  EXPECT_TRUE(queued.claim(doomed));
  EXPECT_TRUE(queued.in_vain().ok()) << "a task that its stream drives looks around itself";
}

}  // namespace
}  // namespace seto::testing
