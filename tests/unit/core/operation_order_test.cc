// The numbers of operations: when one may begin, and what peers are told.

#include "src/core/communicator/operation_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "src/core/call/call_summary.h"
#include "tests/support/seed.h"
#include "tests/unit/core/scripted_ranks.h"

namespace seto::testing {
namespace {

class OrderOfTwo : public ::testing::Test {
 protected:
  void begin(std::uint64_t operation) { order_.begin(Note{operation, 1, 0, {}}); }
  // Issues, begins and ends all operations up to this one; the peer does too.
  void pass(std::uint64_t last) {
    while (order_.done() < last) {
      order_.issue();
      begin(order_.issued());
      order_.complete(order_.issued());
    }
    ranks_.rank(1).completed = last;
  }

  ScriptedRanks ranks_{2};
  Members members_{ranks_.connected()};
  OperationOrder order_{members_};
};

TEST_F(OrderOfTwo, NumbersOperationsFromOneAsTheyAreIssued) {
  EXPECT_EQ(order_.next(), 1U);
  EXPECT_EQ(order_.next(), 1U) << "a number is taken by issue() only";
  order_.issue();
  EXPECT_EQ(order_.issued(), 1U);
  EXPECT_EQ(order_.next(), 2U);
}

TEST_F(OrderOfTwo, BeginsOperationsInOrderAndAtMostAWindowAhead) {
  EXPECT_TRUE(order_.may_begin(1));
  EXPECT_FALSE(order_.may_begin(2)) << "the first has not begun";
  for (std::uint64_t operation = 1; operation <= kWindow; ++operation) {
    EXPECT_TRUE(order_.may_begin(operation));
    begin(operation);
    EXPECT_FALSE(order_.may_begin(operation)) << "it has begun";
  }
  EXPECT_FALSE(order_.may_begin(kWindow + 1)) << "none has ended";
  order_.complete(1);
  EXPECT_TRUE(order_.may_begin(kWindow + 1));
}

TEST_F(OrderOfTwo, PublishesTheNoteOfAnOperationThatBegins) {
  begin(1);
  Note note;
  ASSERT_TRUE(members_.note_of(0, 1, note));
  EXPECT_EQ(note.verdict, 0U);
  EXPECT_FALSE(members_.note_of(0, 2, note));
}

// A later operation may end first; peers must not believe that the earlier one has ended.
TEST_F(OrderOfTwo, TellsPeersTheNumberUpToWhichAllHaveEnded) {
  begin(1);
  begin(2);
  order_.complete(2);
  EXPECT_EQ(order_.done(), 0U);
  EXPECT_EQ(ranks_.rank(0).completed, 0U);
  order_.complete(1);
  EXPECT_EQ(order_.done(), 2U);
  EXPECT_EQ(ranks_.rank(0).completed, 2U);
}

// Every order in which operations within the window can end.
TEST_F(OrderOfTwo, CountsEachOperationOnceWhateverTheOrderOfTheirEnds) {
  std::mt19937_64 random(chosen_seed());
  std::vector<std::uint64_t> under_way;
  std::uint64_t ended = 0;
  while (ended < 2000) {
    while (order_.may_begin(order_.begun() + 1) && random() % 4 != 0) {
      begin(order_.begun() + 1);
      under_way.push_back(order_.begun());
    }
    if (under_way.empty()) continue;
    std::swap(under_way[random() % under_way.size()], under_way.back());
    order_.complete(under_way.back());
    under_way.pop_back();
    ++ended;
    const std::uint64_t oldest = under_way.empty() ? order_.begun() + 1 : *std::min_element(under_way.begin(), under_way.end());
    ASSERT_EQ(order_.done(), oldest - 1);
    ASSERT_EQ(ranks_.rank(0).completed, order_.done());
  }
}

TEST_F(OrderOfTwo, ARejectedCallTellsItsReason) {
  order_.begin_rejected(Note{1, 7, 0, {}}, failure(Code::invalid_argument, "root: 9 is not one of the ranks 0 to 1"));
  Note note;
  ASSERT_TRUE(members_.note_of(0, 1, note));
  EXPECT_EQ(note.verdict, static_cast<std::uint32_t>(Code::invalid_argument));
  EXPECT_EQ(reason_of(note), "root: 9 is not one of the ranks 0 to 1");
  EXPECT_EQ(order_.begun(), 1U);
}

// A call may be rejected after its note was filled in with the words of the call.
TEST_F(OrderOfTwo, AReasonReplacesTheWordsOfTheCall) {
  Note note{1, 7, 0, {~std::uint64_t{0}, ~std::uint64_t{0}, 65, 66, 67}};
  order_.begin_rejected(note, failure(Code::invalid_argument, "op"));
  ASSERT_TRUE(members_.note_of(0, 1, note));
  EXPECT_EQ(reason_of(note), "op");
}

TEST_F(OrderOfTwo, PeersKeepUpWhileTheyAreWithinTheWindow) {
  for (std::uint64_t operation = 1; operation <= kWindow; ++operation) EXPECT_TRUE(order_.peers_keep_up_with(operation));
  EXPECT_FALSE(order_.peers_keep_up_with(kWindow + 1));
  ranks_.rank(1).completed = 1;
  EXPECT_TRUE(order_.peers_keep_up_with(kWindow + 1));
  ranks_.connection[1]->is_dead = true;
  EXPECT_TRUE(order_.peers_keep_up_with(1000)) << "the dead are not waited for";
}

// The note of a rejected call stays until every rank has read it; a rank reads it before it completes the operation.
TEST_F(OrderOfTwo, ANoteOfARejectedCallIsNotOverwrittenUnread) {
  pass(4);
  order_.issue();
  order_.begin_rejected(Note{5, 0, 0, {}}, failure(Code::invalid_argument, "op"));
  order_.complete(5);
  EXPECT_TRUE(order_.rejection_was_read(5 + kNotesKept - 1)) << "that note has its own place";
  EXPECT_FALSE(order_.rejection_was_read(5 + kNotesKept));
  ranks_.rank(1).completed = 5;
  EXPECT_TRUE(order_.rejection_was_read(5 + kNotesKept));
  ranks_.rank(1).completed = 0;
  EXPECT_TRUE(order_.rejection_was_read(5 + kNotesKept)) << "once read, it is not asked again";
}

TEST_F(OrderOfTwo, NothingIsKeptBackWithoutARejection) { EXPECT_TRUE(order_.rejection_was_read(1'000'000)); }

}  // namespace
}  // namespace seto::testing
