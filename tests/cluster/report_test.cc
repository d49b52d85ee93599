// Reports on the dumps of jobs that really hang: ranks that are late, differ, die or are stopped, as threads and as processes.

#if __has_include(<nlohmann/json.hpp>)

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/core/dump/dump_file.h"
#include "tests/support/dump_place.h"
#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

using Json = nlohmann::json;
namespace files = std::filesystem;

constexpr std::uint32_t kTimeoutMs = 3000;  // within it all ranks that call have called; below SETO_LIVENESS_TIMEOUT_MS
constexpr int kBefore = 5;                  // operations that succeed

Json report_on(const std::vector<std::string>& texts) {
  std::vector<setoDumpText_t> dumps;
  for (const std::string& text : texts) dumps.push_back({"a.json", text.data(), text.size()});
  std::size_t size = 0;
  const Answer asked = answer(setoReport(dumps.data(), dumps.size(), setoFormatJson, nullptr, 0, &size));
  EXPECT_EQ(asked.code, setoSuccess) << asked;
  std::string text(size + 1, '\0');
  EXPECT_EQ(setoReport(dumps.data(), dumps.size(), setoFormatJson, text.data(), text.size(), nullptr), setoSuccess);
  text.resize(size);
  Json json = Json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

Json report_on(const DumpPlace& place) {
  std::vector<std::string> texts;
  for (const files::path& path : place.written()) texts.push_back(content(path));
  return report_on(texts);
}

#define EXPECT_VERDICT(report, expected, blamed)                             \
  do {                                                                       \
    const Json& first = (report).at("communicators").at(0);                  \
    EXPECT_EQ(first.at("kind"), expected) << (report).dump(1);               \
    EXPECT_EQ(first.at("culprits"), Json(blamed)) << (report).at("verdict"); \
  } while (false)
#define EXPECT_SAYS(report, part) \
  EXPECT_NE((report).at("verdict").get<std::string>().find(part), std::string::npos) << (report).at("verdict")

Answer all_reduce(setoComm_t comm, std::size_t count = 8) {
  std::vector<float> values(count, 1.0F);
  return answer(setoAllReduce(values.data(), values.data(), count, setoFloat32, setoSum, comm, nullptr));
}

setoComm_t join(const Seat& seat, std::uint32_t timeout_ms) {
  setoConfig_t config = config_of_test();
  config.operationTimeoutMs = timeout_ms;
  config.commName = "world";
  const setoComm_t comm = seat.join(config);
  for (int i = 0; comm != nullptr && i < kBefore; ++i) EXPECT_EQ(all_reduce(comm).code, setoSuccess);
  return comm;
}

// Writes the dump by a call, as a program would.
void dump_to(setoComm_t comm, const files::path& path) {
  std::size_t size = 0;
  EXPECT_EQ(setoCommDump(comm, setoFormatJson, nullptr, 0, &size), setoSuccess);
  std::string text(size + 4096, '\0');
  EXPECT_EQ(setoCommDump(comm, setoFormatJson, text.data(), text.size(), &size), setoSuccess);
  text.resize(std::min(size, text.size() - 1));
  std::ofstream(path) << text;
}

class Report : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Of, Report, ::testing::Values(Kind::processes, Kind::threads),
                         [](const auto& parameter) { return name_of(parameter.param); });

TEST_P(Report, names_the_missing_rank_and_then_its_late_call) {
  const DumpPlace place;
  run_ranks(GetParam(), 4, [&](const Seat& seat) {
    const setoComm_t comm = join(seat, kTimeoutMs);
    ASSERT_NE(comm, nullptr);
    if (seat.rank == 2) {
      // The others have timed out when their dumps exist.
      EXPECT_TRUE(place.await(3));
      dump_to(comm, place.path() / "late.json");
      seat.meet(1);
      seat.meet(2);
      (void)all_reduce(comm, 300);  // it may succeed, because the others had sent their data
      dump_to(comm, place.path() / "late.json");
    } else {
      EXPECT_NE(all_reduce(comm, 300).code, setoSuccess);
      seat.meet(1);
      if (seat.rank == 0) {
        const Json report = report_on(place);
        EXPECT_VERDICT(report, "never_issued", std::vector{2});
        EXPECT_SAYS(report, "rank 2 never issued operation 6 (all_reduce of 300 float, sum), in which ranks 0, 1 and 3 wait");
        EXPECT_SAYS(report, "it has made no call for ");
        const Json& table = report.at("communicators").at(0).at("table");
        EXPECT_EQ(table.at(0).at("operation"), 6);
        EXPECT_NE(table.at(0).at("waits").get<std::string>().find("waits for slice 1 of 1 from rank "), std::string::npos)
            << table;
        EXPECT_EQ(table.at(2).at("issued"), kBefore);
        EXPECT_EQ(report.at("communicators").at(0).at("name"), "world");
        EXPECT_TRUE(report.at("left_out").empty());
      }
      seat.meet(2);
    }
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  const Json report = report_on(place);
  EXPECT_VERDICT(report, "late", std::vector{2});
  EXPECT_SAYS(report, "rank 2 issued operation 6 (all_reduce of 300 float, sum) ");
}

TEST_P(Report, names_the_call_that_differs_and_how) {
  const DumpPlace place;
  run_ranks(GetParam(), 3, [&](const Seat& seat) {
    const setoComm_t comm = join(seat, 20'000);
    ASSERT_NE(comm, nullptr);
    std::vector<float> in(64, 1.0F);
    std::vector<float> out(64 * 3);
    if (seat.rank == 1)
      EXPECT_NE(setoAllGather(in.data(), out.data(), 8, setoFloat32, comm, nullptr), setoSuccess);
    else
      EXPECT_NE(all_reduce(comm, 8).code, setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  EXPECT_EQ(place.written().size(), 3U);
  const Json report = report_on(place);
  EXPECT_VERDICT(report, "differ", std::vector{1});
  EXPECT_SAYS(report, "operation 6 differs between ranks: rank 1 calls all_gather of 8 float (collective all_gather)");
  EXPECT_SAYS(report, "ranks 0 and 2 call all_reduce of 8 float, sum (collective all_reduce)");
}

TEST_P(Report, names_the_count_that_differs) {
  const DumpPlace place;
  run_ranks(GetParam(), 3, [&](const Seat& seat) {
    const setoComm_t comm = join(seat, 20'000);
    ASSERT_NE(comm, nullptr);
    EXPECT_NE(all_reduce(comm, seat.rank == 2 ? 9 : 8).code, setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  const Json report = report_on(place);
  EXPECT_VERDICT(report, "differ", std::vector{2});
  EXPECT_SAYS(report, "(count 9)");
  EXPECT_SAYS(report, "(count 8)");
}

TEST(ReportOfProcesses, names_the_killed_rank_and_the_first_report) {
  const DumpPlace place;
  {
    Job job(Kind::processes, 4, [&](const Seat& seat) {
      const setoComm_t comm = join(seat, 20'000);
      ASSERT_NE(comm, nullptr);
      seat.board.counter[static_cast<std::size_t>(seat.rank)] = 1;
      while (seat.rank == 1) pause();
      EXPECT_NE(all_reduce(comm, 300).code, setoSuccess);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
    for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(job.reached(rank, 1));
    job.kill(1);
    job.finish();
  }
  EXPECT_EQ(place.written().size(), 3U);
  const Json report = report_on(place);
  EXPECT_VERDICT(report, "died", std::vector{1});
  EXPECT_SAYS(report, "), after 5 operations: its process has ended; rank ");
  EXPECT_SAYS(report, "rank 1 is lost (" + host_name() + ":");
  EXPECT_SAYS(report, " reported this first: ");
  EXPECT_EQ(report.at("communicators").at(0).at("missing"), Json(std::vector{1}));
}

TEST(ReportOfProcesses, lists_a_death_before_its_consequences) {
  const DumpPlace place;
  {
    Job job(Kind::processes, 3, [&](const Seat& seat) {
      const setoComm_t comm = join(seat, 20'000);
      setoComm_t twin = nullptr;
      EXPECT_EQ(answer(setoCommSplit(comm, 0, seat.rank, &twin, nullptr)).code, setoSuccess);
      EXPECT_EQ(all_reduce(twin).code, setoSuccess);
      seat.board.counter[static_cast<std::size_t>(seat.rank)] = 1;
      while (seat.rank == 1) pause();
      EXPECT_NE(all_reduce(comm, 300).code, setoSuccess);
      EXPECT_EQ(setoCommAbort(twin), setoSuccess);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(job.reached(rank, 1));
    job.kill(1);
    job.finish();
  }
  const Json report = report_on(place);
  EXPECT_EQ(report.at("communicators").size(), 2U) << "one of them was aborted";
  EXPECT_VERDICT(report, "died", std::vector{1});
}

TEST(ReportOfProcesses, names_the_rank_that_was_stopped) {
  const DumpPlace place;
  {
    Job job(Kind::processes, 3, [&](const Seat& seat) {
      const setoComm_t comm = join(seat, kTimeoutMs);
      ASSERT_NE(comm, nullptr);
      seat.board.counter[static_cast<std::size_t>(seat.rank)] = 1;
      while (seat.board.signal == 0) std::this_thread::yield();
      const Answer heard = all_reduce(comm, 300);
      EXPECT_EQ(heard.code != setoSuccess || seat.rank == 2, true) << heard;
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(job.reached(rank, 1));
    ASSERT_EQ(kill(job.pid(2), SIGSTOP), 0);
    job.board().signal = 1;
    EXPECT_TRUE(place.await(2));
    const Json report = report_on(place);
    EXPECT_VERDICT(report, "no_dump", std::vector{2});
    EXPECT_SAYS(report, "rank 2 never reached operation 6 (all_reduce of 300 float, sum) and left no dump");
    ASSERT_EQ(kill(job.pid(2), SIGCONT), 0);
    job.finish();
  }
}

std::atomic<int> own_handler_ran{0};

// Nothing has failed: the job continues and succeeds.
TEST(ReportOfProcesses, a_signal_dumps_all_and_the_programs_own_handler_runs_too) {
  const DumpPlace place(SIGUSR2);
  {
    Job job(Kind::processes, 3, [&](const Seat& seat) {
      struct sigaction own {};
      own.sa_handler = [](int) { own_handler_ran.fetch_add(1); };
      ASSERT_EQ(sigaction(SIGUSR2, &own, nullptr), 0);
      const setoComm_t comm = join(seat, 30'000);
      ASSERT_NE(comm, nullptr);
      seat.board.counter[static_cast<std::size_t>(seat.rank)] = 1;
      while (seat.rank == 1 && seat.board.signal == 0) std::this_thread::yield();
      EXPECT_EQ(all_reduce(comm, 300).code, setoSuccess);
      EXPECT_EQ(own_handler_ran, 1);
      EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    });
    for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(job.reached(rank, 1));
    for (int rank = 0; rank < 3; ++rank) ASSERT_EQ(kill(job.pid(rank), SIGUSR2), 0);
    EXPECT_TRUE(place.await(3));
    job.board().signal = 1;
    job.finish();
  }
  for (const files::path& path : place.written()) {
    struct stat state {};
    ASSERT_EQ(stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777U, 0600U) << path;
  }
  EXPECT_EQ(std::distance(files::directory_iterator(place.path()), files::directory_iterator()), 3) << "drafts are gone";
  // Ranks other than rank 1 may have been about to enter the call when they were asked to dump.
  const Json report = report_on(place);
  const std::string kind = report.at("communicators").at(0).at("kind");
  EXPECT_TRUE(kind == "never_issued" || kind == "behind" || kind == "well") << report.dump(1);
  if (kind == "well") return;
  const Json& culprits = report.at("communicators").at(0).at("culprits");
  EXPECT_NE(std::find(culprits.begin(), culprits.end(), Json(1)), culprits.end()) << report.dump(1);
}

TEST_P(Report, prints_a_circle_as_one) {
  const DumpPlace place;
  run_ranks(GetParam(), 2, [&](const Seat& seat) {
    const setoComm_t comm = join(seat, kTimeoutMs);
    ASSERT_NE(comm, nullptr);
    float value = 0;
    EXPECT_NE(setoRecv(&value, 1, setoFloat32, 1 - seat.rank, comm, nullptr), setoSuccess);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  const Json report = report_on(place);
  ASSERT_EQ(report.at("communicators").at(0).at("kind"), "circle") << report.dump(1);
  EXPECT_SAYS(report, "wait for each other in a circle: rank ");
  EXPECT_SAYS(report, "receive of 1 float from rank ");
}

// Rank 0 waits for 1, which waits for 2, which is not in a call.
TEST_P(Report, follows_the_chain_to_the_rank_that_does_not_wait) {
  const DumpPlace place;
  run_ranks(GetParam(), 3, [&](const Seat& seat) {
    const setoComm_t comm = join(seat, kTimeoutMs);
    ASSERT_NE(comm, nullptr);
    float value = 0;
    if (seat.rank == 2) {
      EXPECT_TRUE(place.await(2));
      dump_to(comm, place.path() / "own.json");
    } else {
      EXPECT_NE(setoRecv(&value, 1, setoFloat32, seat.rank + 1, comm, nullptr), setoSuccess);
    }
    seat.meet(1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  const Json report = report_on(place);
  EXPECT_VERDICT(report, "behind", std::vector{2});
  EXPECT_SAYS(report, "a receive of 1 float from rank 2 waits at the link from rank 2 to rank 1");
}

// ---- invalid input ----

std::vector<std::string> good_dumps() {
  static std::vector<std::string> texts;
  if (!texts.empty()) return texts;
  const DumpPlace place;
  run_ranks(Kind::threads, 2, [&](const Seat& seat) {
    const setoComm_t comm = join(seat, 20'000);
    dump_to(comm, place.path() / ("dump" + std::to_string(seat.rank) + ".json"));
    seat.meet(1);
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
  });
  for (const files::path& path : place.written()) texts.push_back(content(path));
  return texts;
}

std::string with(const std::string& text, const std::function<void(Json&)>& change) {
  Json json = Json::parse(text);
  change(json);
  return json.dump();
}

// No communicator overwrites another one's file. A file that was removed leaves its name free.
TEST(ReportFiles, have_the_requested_name_unless_it_is_taken) {
  const DumpPlace place;
  run_ranks(Kind::processes, 1, [&](const Seat&) {
    setenv("SETO_OPERATION_TIMEOUT_MS", "50", 1);
    for (const bool taken_away : {true, true, false, false}) {
      setoComm_t comms[2] = {};
      ASSERT_EQ(setoCommInitAll(comms, 2, nullptr), setoSuccess);
      const Answer late = all_reduce(comms[0]);
      EXPECT_EQ(late.code, setoTimeout) << late;
      for (setoComm_t const comm : comms) EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
      std::size_t of_rank_0 = 0, second_names = 0;
      for (const files::path& path : place.written()) {
        const std::string name = path.filename();
        of_rank_0 += name.find("-0.json") != std::string::npos ? 1 : 0;
        second_names += name.find("-0.2.json") != std::string::npos ? 1 : 0;
        if (taken_away) files::remove(path);
      }
      EXPECT_EQ(of_rank_0, 1U);
      if (taken_away) {
        EXPECT_EQ(second_names, 0U);
      }
    }
    std::size_t second_names = 0;
    for (const files::path& path : place.written())
      second_names += path.filename().string().find("-0.2.json") != std::string::npos ? 1 : 0;
    EXPECT_EQ(second_names, 1U);
  });
}

TEST(ReportOnBadInput, leaves_out_invalid_dumps_with_the_reason) {
  std::vector<std::string> texts = good_dumps();
  ASSERT_EQ(texts.size(), 2U);
  const std::string truncated = texts[0].substr(0, texts[0].size() / 2);
  const std::string newer = with(texts[0], [](Json& json) { json["seto_dump"] = 2; });
  const std::string nonsense = with(texts[0], [](Json& json) { json["rank"] = 7; });
  const std::string older = with(texts[1], [](Json& json) { json["time_us"] = 1; });
  const std::string other = with(texts[1], [](Json& json) {
    json["attempt"] = "0xabc";
    json["name"] = "other\n\033[31m";
  });
  for (const std::string* one : {&truncated, &newer, &nonsense, &older, &other}) texts.push_back(*one);
  texts.emplace_back("{}");
  texts.emplace_back("");
  const Json report = report_on(texts);
  EXPECT_VERDICT(report, "well", std::vector<int>{});
  EXPECT_SAYS(report, "no rank waits: all ranks with a dump have ended operation 5");
  ASSERT_EQ(report.at("communicators").size(), 2U) << "two jobs";
  EXPECT_EQ(report.at("communicators").at(0).at("table").size(), 2U) << "the fuller one first";
  EXPECT_EQ(report.at("communicators").at(1).at("name"), "other??[31m") << "it goes to a terminal";
  const std::string all = report.at("left_out").dump();
  ASSERT_EQ(report.at("left_out").size(), 6U) << all;
  for (const char* part : {"not JSON, or truncated", "schema 2, but this version reads 1", "is invalid", "has a later dump",
                           "not a dump of Seto", "(0 bytes)"})
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
}

TEST(ReportOnBadInput, fails_without_a_valid_dump) {
  const setoDumpText_t dump = {"x.json", "[1]", 3};
  const Answer none = answer(setoReport(&dump, 1, setoFormatText, nullptr, 0, nullptr));
  EXPECT_EQ(none.code, setoInvalidArgument);
  EXPECT_TRUE(none.says("x.json: not a dump of Seto")) << none;
  EXPECT_EQ(setoReport(nullptr, 0, setoFormatText, nullptr, 0, nullptr), setoInvalidArgument);
  EXPECT_EQ(setoReport(nullptr, 1, setoFormatText, nullptr, 0, nullptr), setoInvalidArgument);
}

// Values of any kind at any place: the report may say anything, but it must end.
TEST(ReportOnBadInput, survives_any_value_anywhere) {
  std::vector<std::string> texts = good_dumps();
  texts[0] = with(texts[0], [](Json& json) {  // one call stands for all
    Json& calls = json["recorder"]["calls"];
    calls = Json::array({calls.back()});
    json.erase("constants");
  });
  const std::vector<Json> values = {Json(),       Json(-1),      Json(1e300),   Json(~std::uint64_t{0}),
                                    Json("x"),    Json::array(), Json(0),       Json::object(),
                                    Json(65'535), Json(true),    Json("failed")};
  const Json flat = Json::parse(texts[0]).flatten();
  std::size_t reports = 0;
  for (const auto& [pointer, old] : flat.items())
    for (const Json& value : values) {
      const std::string changed = with(texts[0], [&, at = pointer](Json& json) { json[Json::json_pointer(at)] = value; });
      const std::vector<setoDumpText_t> dumps = {{"a", changed.data(), changed.size()}, {"b", texts[1].data(), texts[1].size()}};
      std::size_t size = 0;
      EXPECT_EQ(setoReport(dumps.data(), dumps.size(), setoFormatText, nullptr, 0, &size), setoSuccess);
      reports += size > 0 ? 1 : 0;
    }
  EXPECT_EQ(reports, flat.size() * values.size());
}

}  // namespace
}  // namespace seto::testing

#endif
