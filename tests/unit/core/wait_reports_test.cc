#include "src/core/record/wait_reports.h"

#include <gtest/gtest.h>

#include "src/core/record/recorder_entry.h"

namespace seto {
namespace {

constexpr FlightRecorder::Ticket kMany = 300;

WaitReport wait_for(Rank peer) { return {peer, "waits for rank " + std::to_string(peer), ""}; }

std::string told(const WaitReports& waits, FlightRecorder::Ticket ticket) {
  WaitReport wait;
  return waits.find(ticket, wait) ? wait.text : "";
}

TEST(WaitReports, keeps_the_call_that_waits_longest) {
  WaitReports waits;
  for (FlightRecorder::Ticket ticket = 1; ticket <= kMany; ++ticket) {
    const WaitReports::Question question = waits.ask();
    waits.tell(1, question, wait_for(static_cast<Rank>(ticket)));
    if (ticket > 1) waits.tell(ticket, question, wait_for(0));
    EXPECT_EQ(told(waits, 1), "waits for rank " + std::to_string(ticket));
    EXPECT_NE(told(waits, ticket), "");
  }
}

TEST(WaitReports, keeps_the_older_of_many_that_answer_one_question) {
  WaitReports waits;
  const WaitReports::Question question = waits.ask();
  for (FlightRecorder::Ticket ticket = kMany; ticket > 0; --ticket) {
    waits.tell(ticket, question, wait_for(0));
    EXPECT_NE(told(waits, ticket), "");
  }
  for (FlightRecorder::Ticket ticket = 1; ticket <= 16; ++ticket) EXPECT_NE(told(waits, ticket), "");
  EXPECT_EQ(told(waits, kMany), "");
}

// A call that answered before many other calls were issued and ended.
TEST(WaitReports, an_answer_is_dropped_when_its_call_ends_unless_it_failed) {
  Observability observability;
  observability.recorder() = FlightRecorder(8);
  const auto answered = [&](const Status& how, bool failed) {
    RecorderEntry record;
    record.issue(observability, {}, 1, {});
    record.begin(false);
    (void)observability.waits().ask();
    EXPECT_TRUE(record.wanted(false));
    record.tell(wait_for(3));
    record.end(how, failed, false);
    return told(observability.waits(), observability.recorder().recorded());
  };
  EXPECT_EQ(answered({}, false), "");
  EXPECT_EQ(answered(failure(Code::remote_error, "rank 3 rejected its call"), false), "");
  EXPECT_EQ(answered(failure(Code::timeout, "rank 3 did not join"), true), "waits for rank 3");
}

}  // namespace
}  // namespace seto
