// Diagnoses of dumps that a test job cannot produce on demand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/core/call/ids.h"
#include "src/core/call/mismatch.h"
#include "src/core/dump/dump_format.h"
#include "src/report/job_report.h"

namespace seto {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

ReadDump dump_of(Rank rank, int ranks, const ReadCall& call) {
  ReadDump dump;
  dump.rank = rank;
  dump.ranks = ranks;
  dump.time_us = 100'000'000;
  dump.issued = dump.begun = call.operation;
  dump.peers.resize(static_cast<std::size_t>(ranks));
  dump.calls = {call};
  return dump;
}

ReadCall all_reduce(std::uint64_t count, const std::string& type) {
  ReadCall call;
  call.sequence = call.operation = 3;
  call.what = "all_reduce";
  call.text = "all_reduce of " + std::to_string(count) + " " + type;
  call.count = count;
  call.type = type;
  call.digest = "0x1";
  call.state = "begun";
  call.issued_us = call.begun_us = 1;
  return call;
}

DumpGroup diagnosed(std::vector<ReadDump> dumps) {
  std::vector<std::string> left_out;
  return group_dumps(std::move(dumps), left_out).front();
}

// The text must not depend on the order of the calls: each difference is stated with both values.
TEST(Diagnosis, of_three_calls_gives_the_usual_ones_value_of_each_field) {
  const std::vector<ReadCall> calls = {all_reduce(8, "float"), all_reduce(8, "float"), all_reduce(9, "float"),
                                       all_reduce(8, "int32")};
  std::vector<ReadDump> dumps;
  for (Rank rank = 0; rank < 4; ++rank) dumps.push_back(dump_of(rank, 4, calls[static_cast<std::size_t>(rank)]));
  const Diagnosis diagnosis = diagnosed(dumps).diagnosis;
  EXPECT_EQ(diagnosis.kind, "differ");
  EXPECT_THAT(diagnosis.text, HasSubstr("rank 2 calls all_reduce of 9 float (count 9), "));
  EXPECT_THAT(diagnosis.text, HasSubstr("rank 3 calls all_reduce of 8 int32 (type int32), "));
  EXPECT_THAT(diagnosis.text, ::testing::AnyOf(EndsWith("but ranks 0 and 1 call all_reduce of 8 float (count 8, type float)"),
                                               EndsWith("but ranks 0 and 1 call all_reduce of 8 float (type float, count 8)")));
}

// Dumps taken by signal, one after another, while the ranks progress.
class Progressing : public ::testing::Test {
 protected:
  // Rank 0 has waited for rank 1 for `waited_us`; rank 1, dumped `apart_us` later, has ended that operation and many more.
  static Diagnosis diagnosis(std::uint64_t waited_us, std::uint64_t apart_us) {
    constexpr std::uint64_t kNow = 1'000'000'000;
    ReadCall waits = all_reduce(8, "float");
    waits.issued_us = waits.begun_us = kNow - waited_us;
    waits.wait = WaitReport{1, "waits for slice 1 of 1 from rank 1", "step 2"};
    ReadCall later = all_reduce(8, "float");
    later.operation = later.sequence = 9'000;
    later.state = "ended";
    later.ended_us = kNow + apart_us;
    std::vector<ReadDump> dumps = {dump_of(0, 2, waits), dump_of(1, 2, later)};
    dumps[1].done = 9'000;
    dumps[0].time_us = kNow;
    dumps[1].time_us = kNow + apart_us;
    return diagnosed(std::move(dumps)).diagnosis;
  }
};

TEST_F(Progressing, JobsAreDiagnosedAsWell) {
  for (const auto& [waited_us, apart_us] : {std::pair{3'000U, 2'000'000U}, {200'000U, 0U}, {1'900'000U, 2'000'000U}}) {
    const Diagnosis found = diagnosis(waited_us, apart_us);
    EXPECT_EQ(found.kind, "well") << found.text;
    EXPECT_THAT(found.text, HasSubstr("operations 3 to 9000"));
  }
}

TEST_F(Progressing, DoesNotIncludeAWaitOlderThanTheTimeBetweenDumps) {
  const Diagnosis found = diagnosis(3'000'000, 2'000'000);
  EXPECT_EQ(found.kind, "link") << found.text;
  EXPECT_THAT(found.text, HasSubstr("rank 1 has ended it"));
}

// Clocks are an hour apart, so the order of the dumps is unknown.
TEST_F(Progressing, DoesNotIncludeAnOldWaitIfClocksDiffer) {
  EXPECT_EQ(diagnosis(3'000'000, 3'600'000'000).kind, "link");
  EXPECT_EQ(diagnosis(3'000, 3'600'000'000).kind, "well") << "by its own clock it has just begun";
}

// Each rank's wait is younger than the next dump, and all ranks hang: the last dump shows it.
TEST(Diagnosis, of_a_hanging_job_is_not_hidden_by_dumps_one_after_another) {
  std::vector<ReadDump> dumps;
  for (Rank rank = 0; rank < 3; ++rank) {
    ReadCall waits = all_reduce(8, "float");
    waits.issued_us = waits.begun_us = 99'900'000;
    waits.wait = WaitReport{(rank + 1) % 3, "waits", "step 2"};
    dumps.push_back(dump_of(rank, 3, waits));
    dumps.back().time_us += 5'000'000ULL * static_cast<std::uint64_t>(rank);
  }
  EXPECT_EQ(diagnosed(dumps).diagnosis.kind, "circle");
}

TEST(Diagnosis, of_ranks_outside_calls_states_the_time_since_the_last_call) {
  for (const bool long_ago : {false, true}) {
    ReadCall ended = all_reduce(8, "float");
    ended.state = "ended";
    ended.ended_us = 100'000'000 - (long_ago ? 60'000'000 : 100'000);
    std::vector<ReadDump> dumps = {dump_of(0, 2, ended), dump_of(1, 2, ended)};
    dumps[1].issued = 5;
    EXPECT_EQ(diagnosed(dumps).diagnosis.kind, long_ago ? "behind" : "well");
  }
}

TEST(Diagnosis, of_equal_differences_names_the_field_once) {
  std::vector<ReadDump> dumps;
  for (Rank rank = 0; rank < 4; ++rank) dumps.push_back(dump_of(rank, 4, all_reduce(rank < 2 ? 8 : 8U + rank, "float")));
  EXPECT_THAT(diagnosed(dumps).diagnosis.text, EndsWith("but ranks 0 and 1 call all_reduce of 8 float (count 8)"));
}

// The other rank left no dump. Its state in this dump must not hide the cause, whether it has left, died or still lives.
TEST(Diagnosis, of_one_dump_takes_the_mismatch_from_the_recorded_failure) {
  for (const char* const state : {"alive", "left", "dead"}) {
    std::vector<ReadDump> dumps = {dump_of(1, 2, all_reduce(100, "float"))};
    dumps[0].failed = true;
    dumps[0].blamed = 0;
    dumps[0].failure = Mismatch{4, 1, 0}.of_calls("all_reduce of 100 float, max", "all_reduce of 100 float, sum");
    dumps[0].peers[0].state = state;
    dumps[0].calls[0].wait = WaitReport{0, "waits for slice 1 of 1 from rank 0", "step 2"};
    const Diagnosis found = diagnosed(dumps).diagnosis;
    EXPECT_EQ(found.kind, "differ") << state;
    EXPECT_EQ(found.operation, 4U);
    EXPECT_EQ(found.blamed, (std::vector<Rank>{0, 1}));
    EXPECT_EQ(found.text,
              "operation 4 differs between ranks: rank 1 calls all_reduce of 100 float, max, but rank 0 calls all_reduce of 100 "
              "float, sum");
  }
}

TEST(Diagnosis, of_a_mismatch_with_a_rank_that_does_not_exist_is_another_one) {
  std::vector<ReadDump> dumps = {dump_of(1, 2, all_reduce(100, "float"))};
  dumps[0].failed = true;
  dumps[0].failure = Mismatch{4, 1, 7}.of_plans("barrier");
  EXPECT_NE(diagnosed(dumps).diagnosis.kind, "differ");
}

TEST(Diagnosis, the_remark_names_the_first_failed_rank) {
  std::vector<ReadDump> dumps;
  for (Rank rank = 0; rank < 3; ++rank) {
    dumps.push_back(dump_of(rank, 3, all_reduce(8, "float")));
    dumps.back().failed = rank > 0;
    dumps.back().failed_at_us = 9'000'000 - static_cast<std::uint64_t>(rank);
    dumps.back().failure = "reason " + std::to_string(rank);
  }
  const DumpGroup one = diagnosed(dumps);
  ASSERT_NE(first_to_fail(one), nullptr);
  EXPECT_EQ(first_to_fail(one)->rank, 2);
  EXPECT_THAT(one.remarks, ::testing::Contains("rank 2 failed first: reason 2"));
}

// A process that hangs is not a process that has ended.
TEST(Diagnosis, of_a_lost_rank_states_the_reason) {
  std::vector<ReadDump> dumps = {dump_of(0, 3, all_reduce(8, "float"))};
  dumps[0].failed = true;
  dumps[0].blamed = 2;
  dumps[0].peers[2] = {"dead", 7, 0, -1, "host:17", "shared memory", "its process gives no sign of life for 5000 ms"};
  const Diagnosis frozen = diagnosed(dumps).diagnosis;
  EXPECT_EQ(frozen.kind, "died");
  EXPECT_EQ(frozen.blamed, std::vector<Rank>{2});
  EXPECT_THAT(frozen.text,
              HasSubstr("rank 2 is lost (host:17), after 7 operations: its process gives no sign of life for 5000 ms"));
  dumps[0].peers[2].why.clear();  // older versions wrote no reason
  EXPECT_THAT(diagnosed(dumps).diagnosis.text, HasSubstr("rank 2 is lost (host:17), after 7 operations: its process has ended"));
}

// Over TCP a killed rank has told no other rank how many operations it had ended, but others have ended one in which it took
// part.
TEST(Diagnosis, of_a_lost_rank_counts_what_it_took_part_in) {
  ReadCall ended = all_reduce(8, "float");
  ended.sequence = ended.operation = 1;
  ended.state = "ended";
  std::vector<ReadDump> dumps = {dump_of(0, 3, all_reduce(8, "float")), dump_of(1, 3, all_reduce(8, "float"))};
  dumps[0].failed = true;
  dumps[0].blamed = 2;
  for (ReadDump& dump : dumps) dump.peers[2] = {"dead", 0, 0, -1, "host:17", "TCP", ""};
  EXPECT_THAT(diagnosed(dumps).diagnosis.text, HasSubstr("(host:17), after 0 operations: "));
  dumps[1].calls.insert(dumps[1].calls.begin(), ended);
  EXPECT_THAT(diagnosed(dumps).diagnosis.text,
              HasSubstr("(host:17), after at least 0 operations (rank 2 took part in operation 1): its process has ended"));
  dumps[1].peers[2].done = 1;
  EXPECT_THAT(diagnosed(dumps).diagnosis.text, HasSubstr("(host:17), after 1 operation: "));
  dumps[1].peers[2].done = 0;
  dumps[1].calls[0].what = "broadcast";
  EXPECT_THAT(diagnosed(dumps).diagnosis.text, HasSubstr("(host:17), after 0 operations: ")) << "a leaf of it ends it alone";
}

TEST(SecondsText, has_few_digits) {
  EXPECT_EQ(seconds_text(1'000'000, 1'712'345), "0.712 s");
  EXPECT_EQ(seconds_text(0, 12'345'678'901), "12346 s");
  EXPECT_EQ(seconds_text(5, 3), "0 s") << "clocks of two hosts";
}

#if __has_include(<nlohmann/json.hpp>)

std::string name_read(const std::string& name) {
  const Result<ReadDump> read =
      read_dump("a", R"({"seto_dump":1,"rank":0,"ranks":1,"peers":[{}],"recorder":{"calls":[]},"name":")" + name + "\"}");
  EXPECT_TRUE(read.ok()) << read.status().text();
  return read.ok() ? read.value().name : "";
}

// U+0080 to U+009F are control characters of a terminal too: U+009B begins a sequence as ESC [ does.
TEST(DumpReading, replaces_control_characters) {
  EXPECT_EQ(name_read("a\xc2\x9b"
                      "31m\xc2\x80\xc2\x85\x7f\\u001b\\u009b[\\n"),
            "a?31m????\?[?");
  EXPECT_EQ(name_read("caf\xc3\xa9 \xc2\xa0\xc3\x82\xe7\x80\xac\xe6\x88\xb8"),
            "caf\xc3\xa9 \xc2\xa0\xc3\x82\xe7\x80\xac\xe6\x88\xb8");
}

TEST(DumpReading, cuts_a_long_text_between_characters) {
  std::string inland_sea;
  while (inland_sea.size() < 5000) inland_sea += "\xe7\x80\xac";  // three bytes
  const std::string read = name_read(inland_sea);
  EXPECT_EQ(read.size(), 4095U);
  EXPECT_EQ(read, inland_sea.substr(0, read.size()));
  EXPECT_EQ(name_read(std::string(5000, 'a')).size(), 4096U);
}

#endif

}  // namespace
}  // namespace seto
