// The dumps of several ranks: which belong together, which are used, and how they are printed.

#include "src/report/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "src/report/diagnosis_phrases.h"
#include "tests/support/seed.h"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#endif

namespace seto {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kNow = 100'000'000;

ReadDump dump_of(const std::string& attempt, Rank rank, int ranks) {
  ReadDump dump;
  dump.source = attempt + "-" + std::to_string(rank) + ".json";
  dump.attempt = attempt;
  dump.rank = rank;
  dump.ranks = ranks;
  dump.time_us = kNow;
  dump.host = "host";
  dump.pid = 17;
  dump.peers.resize(static_cast<std::size_t>(ranks));
  return dump;
}

ReadCall call_in(std::uint64_t operation, const std::string& state) {
  ReadCall call;
  call.sequence = call.operation = operation;
  call.what = "barrier";
  call.text = "barrier";
  call.state = state;
  call.digest = "0x1";
  call.issued_us = call.begun_us = kNow - 5'000'000;
  return call;
}

struct Grouped {
  std::vector<DumpGroup> groups;
  std::vector<std::string> left_out;
};

Grouped grouped(std::vector<ReadDump> dumps) {
  Grouped result;
  result.groups = group_dumps(std::move(dumps), result.left_out);
  return result;
}

TEST(DumpGroups, AreThoseOfOneAttemptAndOneNumberOfRanks) {
  const Grouped found = grouped({dump_of("0x1", 0, 2), dump_of("0x2", 0, 2), dump_of("0x1", 1, 2), dump_of("0x1", 0, 3)});
  ASSERT_EQ(found.groups.size(), 3U);
  EXPECT_EQ(found.groups.front().dumps.size(), 2U) << "the fullest first";
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST(DumpGroups, KnowTheirRanksInOrderAndThoseWithoutADump) {
  const Grouped found = grouped({dump_of("0x1", 3, 5), dump_of("0x1", 1, 5)});
  const DumpGroup& group = found.groups.at(0);
  EXPECT_EQ(group.dumps.at(0).rank, 1);
  EXPECT_EQ(group.dumps.at(1).rank, 3);
  EXPECT_THAT(group.missing, ElementsAre(0, 2, 4));
  EXPECT_EQ(group.of(2), nullptr);
  EXPECT_EQ(group.of(3)->rank, 3);
  EXPECT_THAT(group.remarks, Contains("no dump of ranks 0, 2 and 4"));
}

TEST(DumpGroups, KeepTheLatestDumpOfARankInWhateverOrderTheyCome) {
  for (const bool later_first : {true, false}) {
    ReadDump early = dump_of("0x1", 0, 1);
    ReadDump late = dump_of("0x1", 0, 1);
    early.source = "early.json";
    late.source = "late.json";
    late.time_us += 1;
    std::vector<ReadDump> dumps = {early, late};
    if (later_first) std::swap(dumps[0], dumps[1]);
    const Grouped found = grouped(std::move(dumps));
    EXPECT_EQ(found.groups.at(0).dumps.at(0).source, "late.json");
    EXPECT_THAT(found.left_out, ElementsAre("early.json: rank 0 has a later dump, late.json"));
  }
}

TEST(DumpGroups, AFileThatIsGivenTwiceIsSaidToBe) {
  ReadDump one = dump_of("0x1", 0, 1);
  one.source = "a.json";
  EXPECT_THAT(grouped({one, one}).left_out, ElementsAre("a.json: given twice"));
}

TEST(DumpGroups, InTroubleComeBeforeThoseThatWereLeftAndThoseAreBeforeTheWell) {
  ReadDump well = dump_of("0x1", 0, 1);
  ReadDump left = dump_of("0x2", 0, 1);
  left.failed = true;
  left.failure_code = "aborted";
  ReadDump stuck = dump_of("0x3", 0, 1);
  stuck.issued = stuck.begun = 1;
  stuck.calls = {call_in(1, "begun")};
  const Grouped found = grouped({well, left, stuck});
  std::vector<std::string> attempts;
  for (const DumpGroup& group : found.groups) attempts.push_back(group.dumps.front().attempt);
  EXPECT_THAT(attempts, ElementsAre("0x3", "0x2", "0x1"));
}

TEST(DumpGroups, SayThatDumpsWereTakenFarApart) {
  ReadDump late = dump_of("0x1", 1, 2);
  late.time_us += 10'000'000;
  EXPECT_THAT(grouped({dump_of("0x1", 0, 2), late}).groups.at(0).remarks, IsEmpty()) << "at the limit";
  late.time_us += 1'000'000;
  EXPECT_THAT(grouped({dump_of("0x1", 0, 2), late}).groups.at(0).remarks,
              ElementsAre("these dumps were taken up to 11 s apart (by the clocks of their hosts)"));
}

TEST(DumpGroups, SayWhichRankHadNoRecorder) {
  ReadDump silent = dump_of("0x1", 0, 2);
  silent.issued = silent.done = 4;
  const ReadDump idle = dump_of("0x1", 1, 2);  // it made no call, so it has none to remember
  EXPECT_THAT(grouped({silent, idle}).groups.at(0).remarks,
              ElementsAre("rank 0 ran without a flight recorder (SETO_RECORDER=0)"));
}

TEST(StuckCall, IsTheOldestThatHasBegunAndNotEndedWell) {
  ReadDump dump = dump_of("0x1", 0, 1);
  EXPECT_EQ(stuck_call(dump), nullptr);
  dump.calls = {call_in(1, "ended"), call_in(2, "rejected"), call_in(3, "issued"), call_in(4, "failed"), call_in(5, "begun")};
  EXPECT_EQ(stuck_call(dump)->operation, 4U);
}

TEST(CallOf, FindsTheLatestCallOfAnOperationAndNoneForACallWithoutANumber) {
  ReadDump dump = dump_of("0x1", 0, 1);
  dump.calls = {call_in(0, "ended"), call_in(2, "ended"), call_in(2, "begun")};
  EXPECT_EQ(call_of(dump, 2)->state, "begun");
  EXPECT_EQ(call_of(dump, 3), nullptr);
  EXPECT_EQ(call_of(dump, 0), nullptr) << "sends and receives have no operation";
}

TEST(FirstToFail, IsTheRankWithTheEarliestFailure) {
  std::vector<ReadDump> dumps = {dump_of("0x1", 0, 3), dump_of("0x1", 1, 3), dump_of("0x1", 2, 3)};
  EXPECT_EQ(first_to_fail(grouped(dumps).groups.at(0)), nullptr);
  dumps[1].failed = dumps[2].failed = true;
  dumps[1].failed_at_us = 9;
  dumps[2].failed_at_us = 8;
  dumps[0].failed_at_us = 1;  // it has not failed
  EXPECT_EQ(first_to_fail(grouped(dumps).groups.at(0))->rank, 2);
}

TEST(Phrases, AgreeInNumber) {
  EXPECT_EQ(with_verb({2}, "waits", "wait"), "rank 2 waits");
  EXPECT_EQ(with_verb({0, 1}, "waits", "wait"), "ranks 0 and 1 wait");
  EXPECT_EQ(with_verb({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "waits", "wait"), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more wait");
}

TEST(Phrases, NameACallByItsOperationIfItHasOne) {
  EXPECT_EQ(with_number(call_in(6, "begun")), "operation 6 (barrier)");
  ReadCall send = call_in(0, "begun");
  send.text = "send of 8 float to rank 1";
  EXPECT_EQ(with_number(send), "a send of 8 float to rank 1");
}

TEST(Phrases, SayWhatARankDoes) {
  ReadDump dump = dump_of("0x1", 0, 2);
  EXPECT_EQ(where_it_is(dump), "it has made no call at all");
  dump.issued = 3;
  dump.done = 1;
  EXPECT_EQ(where_it_is(dump), "it has issued 2 calls that have not begun");
  dump.issued = 1;
  dump.calls = {call_in(1, "ended")};
  dump.calls[0].ended_us = kNow - 2'000'000;
  EXPECT_EQ(where_it_is(dump), "it has made no call for 2 s: it computes, or waits for something else");
  dump.calls[0].state = "begun";
  EXPECT_EQ(where_it_is(dump), "it is in operation 1 (barrier)");
  dump.calls[0].wait = WaitReport{1, "waits for slice 1 of 4 from rank 1", "step 2"};
  EXPECT_EQ(where_it_is(dump), "it is in operation 1 (barrier), and waits for slice 1 of 4 from rank 1");
}

// A rank without a dump is described by the best that the others know of it.
TEST(Phrases, DescribeARankAsTheOthersSeeIt) {
  std::vector<ReadDump> dumps = {dump_of("0x1", 0, 3), dump_of("0x1", 1, 3)};
  dumps[0].peers[2] = {"alive", 4, 5, -1, "", "", ""};
  dumps[1].peers[2] = {"dead", 3, 6, -1, "tokyo:17", "", "its process has ended"};
  EXPECT_EQ(as_others_see(grouped(dumps).groups.at(0), 2),
            "tokyo:17, the other ranks see it as dead with 4 operations done, in operation 6");
  dumps[0].peers[2] = dumps[1].peers[2] = {"alive", 4, 4, -1, "", "", ""};
  EXPECT_EQ(as_others_see(grouped(dumps).groups.at(0), 2), "the other ranks see it as alive with 4 operations done");
}

// The report says the same for any order of the files.
TEST(DumpGroups, DoNotDependOnTheOrderOfTheDumps) {
  std::vector<ReadDump> dumps;
  for (Rank rank = 0; rank < 6; ++rank) {
    dumps.push_back(dump_of("0x1", rank, 7));
    dumps.back().issued = dumps.back().begun = rank == 4 ? 2 : 3;
    if (rank != 4) dumps.back().calls = {call_in(3, "begun")};
    if (rank != 4) dumps.back().calls[0].wait = WaitReport{4, "waits for rank 4", ""};
  }
  std::mt19937_64 random(testing::chosen_seed());
  const DumpGroup expected = grouped(dumps).groups.at(0);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(dumps.begin(), dumps.end(), random);
    const DumpGroup group = grouped(dumps).groups.at(0);
    EXPECT_EQ(group.diagnosis.text, expected.diagnosis.text);
    EXPECT_EQ(group.diagnosis.blamed, expected.diagnosis.blamed);
    EXPECT_EQ(group.remarks, expected.remarks);
  }
  EXPECT_EQ(expected.diagnosis.kind, "never_issued");
}

#if __has_include(<nlohmann/json.hpp>)

const std::string kStuck =
    R"({"seto_dump":1,"rank":0,"ranks":2,"host":"a","pid":7,"time_us":9000000,"name":"","attempt":"0x1","state":"usable",)"
    R"("operations":{"issued":12,"begun":12,"done":11},"peers":[{},{}],"recorder":{"calls":[{"sequence":12,"operation":12,)"
    R"("text":"barrier","digest":"0x1","state":"begun","issued_us":4000000,"begun_us":4000000,)"
    R"("waits":{"peer":1,"text":"waits for slice 1 of 1 from rank 1","step":"step 2 of 3"}}]}})";

TEST(JobReport, TextAlignsItsColumns) {
  const std::vector<DumpText> dumps = {{"a.json", kStuck}};
  const std::string text = report(dumps, ReportFormat::text).value();
  EXPECT_THAT(
      text,
      HasSubstr("communicator (none) (0x1), dumps of 1 of 2 ranks\n"
                "note: no dump of rank 1\n"
                "  rank  process  state   done/issued  for  doing\n"
                "  0     a:7      usable  11/12        5 s  12: barrier; waits for slice 1 of 1 from rank 1 (step 2 of 3)\n"));
}

TEST(JobReport, JsonCarriesTheNumbersOfTheCallUnderWay) {
  const std::vector<DumpText> dumps = {{"a.json", kStuck}, {"b.json", "{"}};
  const auto json = nlohmann::json::parse(report(dumps, ReportFormat::json).value());
  const auto& row = json.at("communicators").at(0).at("table").at(0);
  EXPECT_EQ(row.at("operation"), 12);
  EXPECT_EQ(row.at("for_us"), 5'000'000);
  EXPECT_EQ(row.at("peer"), 1);
  EXPECT_EQ(row.at("step"), "step 2 of 3");
  EXPECT_EQ(row.at("source"), "a.json");
  EXPECT_EQ(json.at("communicators").at(0).at("missing"), nlohmann::json::array({1}));
  EXPECT_EQ(json.at("left_out").at(0), "b.json: not JSON, or truncated (1 bytes)");
}

TEST(JobReport, FailsWithTheReasonForEachTextIfNoneIsADump) {
  const std::vector<DumpText> dumps = {{"a.json", "{"}, {"b.json", "{}"}};
  const auto none = report(dumps, ReportFormat::text);
  EXPECT_EQ(none.status().code(), Code::invalid_argument);
  EXPECT_EQ(
      none.status().text(),
      "no dump to report on: a.json: not JSON, or truncated (1 bytes); b.json: not a dump of Seto: it has no \"seto_dump\"");
  EXPECT_EQ(report({}, ReportFormat::text).status().text(), "no dump to report on");
}

// File names come from the command line and from the file system: any bytes.
TEST(JobReport, JsonIsValidWhateverTheFilesAreCalled) {
  const std::vector<DumpText> dumps = {{"caf\xe9.json", kStuck}, {"\xff\"\n", "{"}};
  const auto json = nlohmann::json::parse(report(dumps, ReportFormat::json).value(), nullptr, false);
  EXPECT_FALSE(json.is_discarded());
}

#endif

}  // namespace
}  // namespace seto
