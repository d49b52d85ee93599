#include "src/core/record/flight_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "src/codec/codec.h"
#include "src/core/record/recorder_entry.h"

namespace seto {
namespace {

// All fields are derived from one number, so that a reader can detect an entry that mixes two calls.
RecordedCall call_of(std::uint64_t number) {
  RecordedCall::Parts parts;
  parts.count = number;
  parts.bytes = number * 4;
  parts.digest = static_cast<std::uint32_t>(number);
  parts.root = static_cast<Rank>(number % 1000);
  return RecordedCall::of(parts);
}

void expect_whole(const RecordedOperation& one) {
  EXPECT_EQ(one.operation, one.sequence);
  EXPECT_EQ(one.call.count, one.sequence);
  EXPECT_EQ(one.call.bytes, one.sequence * 4);
  EXPECT_EQ(one.call.digest, static_cast<std::uint32_t>(one.sequence));
  EXPECT_EQ(one.call.root, static_cast<Rank>(one.sequence % 1000));
}

TEST(FlightRecorder, keeps_the_description_of_a_call) {
  FlightRecorder recorder(4);
  RecordedCall::Parts parts;
  parts.kind = RecordedKind::receive;
  parts.collective = Collective::scatter;
  parts.type = DataType::bfloat16;
  parts.op = ReduceOp::premul_sum;
  parts.count = ~std::uint64_t{0};
  parts.bytes = std::uint64_t{1} << 60;  // more than the field can hold
  parts.root = 65'535;
  parts.algorithm = 300;
  parts.codec = kCodecCount;
  parts.digest = 0xfedcba98;
  const FlightRecorder::Ticket ticket = recorder.issue(RecordedCall::of(parts), (std::uint64_t{1} << 48) - 1, {});
  const RecordedOperation one = recorder.read().at(0);
  EXPECT_EQ(ticket, 1U);
  EXPECT_EQ(one.operation, (std::uint64_t{1} << 48) - 1);
  EXPECT_EQ(one.call.kind, parts.kind);
  EXPECT_EQ(one.call.collective, parts.collective);
  EXPECT_EQ(one.call.type, parts.type);
  EXPECT_EQ(one.call.op, parts.op);
  EXPECT_EQ(one.call.count, parts.count);
  EXPECT_EQ(one.call.bytes, (std::uint64_t{1} << 48) - 1);
  EXPECT_EQ(one.call.root, parts.root);
  EXPECT_EQ(one.call.algorithm, parts.algorithm);
  EXPECT_EQ(one.call.codec, parts.codec);
  EXPECT_EQ(one.call.digest, parts.digest);
  EXPECT_EQ(one.state, RecordedState::issued);
  EXPECT_GT(one.issued, 0U);
  EXPECT_EQ(one.begun, 0U);
}

TEST(FlightRecorder, follows_a_call_to_its_end) {
  FlightRecorder recorder(4);
  const FlightRecorder::Ticket ticket = recorder.issue(call_of(1), 1, {});
  recorder.begin(ticket, 0);
  EXPECT_EQ(recorder.read().at(0).state, RecordedState::begun);
  EXPECT_EQ(recorder.read().at(0).begun, recorder.read().at(0).issued) << "at once";
  EXPECT_EQ(recorder.read().at(0).ended, 0U);
  recorder.end(ticket, RecordedState::failed, 77);
  EXPECT_EQ(recorder.read().at(0).state, RecordedState::failed);
  EXPECT_EQ(recorder.read().at(0).ended, 77U);
}

// Its time is known a moment later, so until then any reader's time is as good.
TEST(FlightRecorder, takes_the_time_of_issue_later) {
  FlightRecorder recorder(2);
  const std::uint64_t before = ticks();
  const FlightRecorder::Ticket ticket = recorder.issue(call_of(1), 1, {}, false);
  recorder.begin(ticket, 0);
  const RecordedOperation early = recorder.read().at(0);
  EXPECT_GE(early.issued, before);
  EXPECT_LE(early.issued, ticks());
  EXPECT_EQ(early.begun, early.issued);
  recorder.stamp(ticket);
  const RecordedOperation later = recorder.read().at(0);
  EXPECT_GE(later.issued, early.issued);
  EXPECT_EQ(later.begun, later.issued);
  EXPECT_EQ(recorder.read().at(0).issued, later.issued) << "it stays";

  recorder.issue(call_of(2), 2, {});
  recorder.issue(call_of(3), 3, {});
  const std::uint64_t issued = recorder.read().at(1).issued;
  recorder.stamp(ticket);
  EXPECT_EQ(recorder.read().at(1).issued, issued) << "another call has taken its place";
  recorder.stamp(0);
}

TEST(FlightRecorder, a_call_that_ends_has_its_time) {
  Observability observability;
  observability.recorder() = FlightRecorder(2);
  RecorderEntry entry;
  entry.issue(observability, call_of(1), 1, {}, RecorderEntry::TimeStamp::later);
  EXPECT_TRUE(entry.unstamped());
  entry.end({}, false, false);
  EXPECT_FALSE(entry.unstamped());
  const std::uint64_t issued = observability.recorder().read().at(0).issued;
  EXPECT_EQ(observability.recorder().read().at(0).issued, issued);
}

TEST(FlightRecorder, forgets_the_oldest) {
  FlightRecorder recorder(5);  // rounded up to a ring of eight
  std::vector<FlightRecorder::Ticket> tickets;
  for (std::uint64_t number = 1; number <= 23; ++number) tickets.push_back(recorder.issue(call_of(number), number, {}));
  const std::vector<RecordedOperation> kept = recorder.read();
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(kept.front().sequence, 19U);
  EXPECT_EQ(kept.back().sequence, 23U);
  for (const RecordedOperation& one : kept) expect_whole(one);
  // Ending a call whose entry was overwritten changes nothing.
  recorder.end(tickets[14], RecordedState::failed, 5);  // call 15 was in the entry that call 23 uses now
  EXPECT_EQ(recorder.read().back().state, RecordedState::issued);
  EXPECT_EQ(recorder.recorded(), 23U);
}

TEST(FlightRecorder, keeps_the_callers_tag_and_label_of_a_call_only) {
  FlightRecorder recorder(2);
  recorder.issue(call_of(1), 1, {});
  recorder.issue(call_of(2), 2, {"gradients", 7});
  EXPECT_EQ(recorder.read().at(0).mark.label, nullptr);
  EXPECT_STREQ(recorder.read().at(1).mark.label, "gradients");
  EXPECT_EQ(recorder.read().at(1).mark.tag, 7U);
  recorder.issue(call_of(3), 3, {nullptr, 9});
  recorder.issue(call_of(4), 4, {});
  EXPECT_EQ(recorder.read().at(0).mark.tag, 9U);
  EXPECT_EQ(recorder.read().at(0).mark.label, nullptr);
  EXPECT_TRUE(recorder.read().at(1).mark.empty()) << "the entry must not keep the previous call's label";
}

TEST(FlightRecorder, records_nothing_when_off) {
  FlightRecorder recorder(0);
  const FlightRecorder::Ticket ticket = recorder.issue(call_of(1), 1, {});
  recorder.begin(ticket, 1);
  recorder.end(ticket, RecordedState::ended, 1);
  EXPECT_EQ(ticket, 0U);
  EXPECT_TRUE(recorder.read().empty());
}

TEST(FlightRecorder, is_read_while_it_is_written) {
  constexpr std::uint64_t kCapacity = 256;
  FlightRecorder recorder(kCapacity);
  std::atomic<bool> enough{false};
  std::thread writer([&] {
    for (std::uint64_t number = 1; !enough; ++number) {
      const FlightRecorder::Ticket ticket = recorder.issue(call_of(number), number, {});
      recorder.begin(ticket, number);
      recorder.end(ticket, RecordedState::ended, number);
    }
  });
  const Deadline until = Deadline::after_ms(20'000);
  std::uint64_t seen = 0;
  while ((seen < 20'000 || recorder.recorded() < kCapacity) && !until.passed()) {
    for (const RecordedOperation& one : recorder.read()) {
      expect_whole(one);
      EXPECT_TRUE(one.ended == 0 || one.ended == one.sequence) << one.sequence;
      ++seen;
    }
  }
  enough = true;
  writer.join();
  EXPECT_GE(seen, 20'000U);
  EXPECT_EQ(recorder.read().size(), kCapacity);
}

}  // namespace
}  // namespace seto
