#include "src/core/record/wait_reports.h"

#include <gtest/gtest.h>

#include "src/core/record/recorder_entry.h"

namespace seto {
namespace {

constexpr Recorder::Ticket kMany = 300;

WaitOfCall wait_for(Rank peer) { return {peer, "waits for rank " + std::to_string(peer), ""}; }

std::string told(const Waits& waits, Recorder::Ticket ticket) {
  WaitOfCall wait;
  return waits.find(ticket, wait) ? wait.text : "";
}

TEST(Waits, keeps_the_call_that_hangs_longest) {
  Waits waits;
  for (Recorder::Ticket ticket = 1; ticket <= kMany; ++ticket) {
    const Waits::Question question = waits.ask();
    waits.tell(1, question, wait_for(static_cast<Rank>(ticket)));
    if (ticket > 1) waits.tell(ticket, question, wait_for(0));
    EXPECT_EQ(told(waits, 1), "waits for rank " + std::to_string(ticket));
    EXPECT_NE(told(waits, ticket), "");
  }
}

TEST(Waits, keeps_the_older_of_many_that_answer_one_question) {
  Waits waits;
  const Waits::Question question = waits.ask();
  for (Recorder::Ticket ticket = kMany; ticket > 0; --ticket) {
    waits.tell(ticket, question, wait_for(0));
    EXPECT_NE(told(waits, ticket), "");
  }
  for (Recorder::Ticket ticket = 1; ticket <= 16; ++ticket) EXPECT_NE(told(waits, ticket), "");
  EXPECT_EQ(told(waits, kMany), "");
}

// A call that answered before many others came and ended.
TEST(Waits, an_answer_goes_with_its_call_but_not_if_it_failed) {
  Seeing seeing;
  seeing.recorder() = Recorder(8);
  const auto answered = [&](const Status& how, bool failed) {
    TaskRecord record;
    record.issue(seeing, {}, 1, {});
    record.begin(false);
    (void)seeing.waits().ask();
    EXPECT_TRUE(record.wanted(false));
    record.tell(wait_for(3));
    record.end(how, failed, false);
    return told(seeing.waits(), seeing.recorder().recorded());
  };
  EXPECT_EQ(answered({}, false), "");
  EXPECT_EQ(answered(failure(Code::remote_error, "rank 3 rejected its call"), false), "");
  EXPECT_EQ(answered(failure(Code::timeout, "rank 3 did not come"), true), "waits for rank 3");
}

}  // namespace
}  // namespace seto
