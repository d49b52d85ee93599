// seto report and seto doctor, as users run them.

#if __has_include(<nlohmann/json.hpp>)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/cluster/programs.h"
#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

namespace files = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A directory with a dump of each rank of a communicator of two ranks.
class Dumps final {
 public:
  Dumps() {
    std::string pattern = (files::temp_directory_path() / "seto_seeing_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    EXPECT_TRUE(run_alone([&] {
      ThreadRanks ranks(2);
      for (int rank = 0; rank < 2; ++rank) {
        std::size_t size = 0;
        EXPECT_TRUE(succeeded(setoCommDump(ranks[rank], setoFormatJson, nullptr, 0, &size)));
        std::string text(size + 4096, '\0');
        EXPECT_TRUE(succeeded(setoCommDump(ranks[rank], setoFormatJson, text.data(), text.size(), &size)));
        std::ofstream(path_ / ("dump" + std::to_string(rank) + ".json")) << text.substr(0, size);
      }
    }));
  }
  ~Dumps() { files::remove_all(path_); }
  Dumps(const Dumps&) = delete;
  Dumps& operator=(const Dumps&) = delete;

  [[nodiscard]] std::string at(const std::string& name) const { return (path_ / name).string(); }

 private:
  files::path path_;
};

TEST(ReportCommand, prints_the_diagnosis_first_then_the_table) {
  const Dumps dumps;
  const Ended text = seto("report " + dumps.at("dump0.json") + " " + dumps.at("dump1.json"));
  EXPECT_EQ(text.status, 0) << text.text;
  EXPECT_THAT(text.text, StartsWith("no rank waits: all ranks with a dump have ended operation 0\n"));
  EXPECT_THAT(text.text, AllOf(HasSubstr("dumps of 2 of 2 ranks"), HasSubstr("rank  process")));
  EXPECT_THAT(text.text, Not(HasSubstr("\033["))) << "this is no terminal";
  const Ended none = seto("report --json '" + dumps.at("dump*.json") + "'");
  EXPECT_EQ(none.status, 2) << "the shell did not expand it to files: " << none.text;
}

TEST(ReportCommand, names_unreadable_files_and_continues) {
  const Dumps dumps;
  std::ofstream(dumps.at("torn.json")) << R"({"seto_dump":1,"ra)";
  const Ended ended = seto("report --json " + dumps.at("none.json") + " " + dumps.at("dump0.json") + " " + dumps.at("torn.json"));
  EXPECT_EQ(ended.status, 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("cannot read " + dumps.at("none.json") + ": No such file"));
  const Json json = Json::parse(ended.text.substr(ended.text.find('{')), nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << ended.text;
  EXPECT_EQ(json.at("communicators").at(0).at("missing"), Json(std::vector{1}));
  EXPECT_THAT(json.at("left_out").at(0).get<std::string>(), StartsWith(dumps.at("torn.json")));
  EXPECT_EQ(seto("report " + dumps.at("torn.json")).status, 2);
  EXPECT_EQ(seto("report").status, 2);
}

TEST(DoctorCommand, reports_problems_and_sets_the_exit_status) {
  const Ended json = seto("doctor --json");
  const Json checks = Json::parse(json.text, nullptr, false);
  ASSERT_FALSE(checks.is_discarded()) << json.text;
  EXPECT_EQ(json.status, checks.at("bad") == 0 ? 0 : 1);
  EXPECT_GT(checks.at("checks").size(), 15U);
  const Ended text = seto("doctor");
  EXPECT_THAT(text.text, AllOf(HasSubstr(" memfd "), HasSubstr(" open files "), Not(HasSubstr("\033["))));
}

// More ranks than any limit allows.
TEST(DoctorCommand, fails_if_a_finding_is_bad) {
  const Ended ended = seto("doctor --ranks 65536", "SETO_INTERFACE=no_such_interface");
  EXPECT_EQ(ended.status, 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("bad   reached at"));
  EXPECT_THAT(ended.text, HasSubstr("fix: see SETO_INTERFACE"));
  const Ended alone = seto("doctor", "SETO_ROOT=x SETO_RANK=0");
  EXPECT_EQ(alone.status, 1) << alone.text;
  EXPECT_THAT(alone.text.substr(alone.text.rfind('\n', alone.text.size() - 2) + 1), StartsWith("bad   job  ")) << alone.text;
  EXPECT_EQ(seto("doctor --ranks 0").status, 2);
  EXPECT_EQ(seto("doctor --bogus").status, 2);
}

// Three ranks of one host; each reports for itself.
TEST(DoctorCommand, measures_a_job) {
  const Ended ended = seto("run -n 3 --no-prefix --timeout 60 -- '" + built("seto") + "' doctor --json");
  const std::size_t begin = ended.text.find('{');
  ASSERT_NE(begin, std::string::npos) << ended.text;
  const Json all = Json::parse(ended.text.substr(begin), nullptr, false);
  ASSERT_FALSE(all.is_discarded()) << ended.text;
  EXPECT_EQ(ended.status, all.at("job").at("bad") == 0 ? 0 : 1) << ended.text;
  const Json& job = all.at("job");
  EXPECT_EQ(job.at("ranks"), 3);
  EXPECT_EQ(job.at("hosts"), Json({"rank 0", "rank 1", "rank 2"}));
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column) {
      if (row == column) continue;
      EXPECT_EQ(job.at("ways").at(row).at(column), "shared memory") << ended.text;
      EXPECT_GT(job.at("latency_us").at(row).at(column), 0) << ended.text;
      EXPECT_GT(job.at("bytes_per_second").at(row).at(column), 1e6) << ended.text;
      EXPECT_LT(std::abs(job.at("clock_offset_us").at(row).at(column).get<double>()), 1e5) << "one clock: " << ended.text;
    }
  EXPECT_EQ(job.at("sites").size(), 3U) << ended.text;
  EXPECT_EQ(job.at("ciphers").at(0).at(1), "none") << "memory";
  EXPECT_TRUE(all.at("host").contains("checks"));
}

TEST(DoctorCommand, tells_the_sites_and_what_is_encrypted) {
  const std::string variables = "SETO_TRANSPORT=tcp SETO_SITE_ID=north SETO_TLS=";
  for (const auto& [tls, words] : {std::pair<const char*, const char*>{"sites", ", not encrypted\n"},
                                   std::pair<const char*, const char*>{"always", ", encrypted by TLS_"}}) {
    const Ended ended = seto("run -n 2 --no-prefix --timeout 60 -- '" + built("seto") + "' doctor", variables + tls);
    EXPECT_THAT(ended.text, HasSubstr("sites, as stated\n  north: rank 0, rank 1\n"));
    EXPECT_THAT(ended.text, HasSubstr(words));
    EXPECT_THAT(ended.text, ContainsRegex("rank 1: (nothing bad found|bad findings); rank 0 prints the report\n"));
  }
}

SETO_TEST_ALONE(ApiDoctor, counts_what_is_bad) {
  int bad = -1;
  std::size_t size = 0;
  EXPECT_TRUE(succeeded(setoDoctor(1, setoFormatJson, nullptr, 0, &size, &bad)));
  EXPECT_GE(bad, 0);
  EXPECT_GT(size, 500U);
  EXPECT_TRUE(succeeded(setoDoctor(0, setoFormatText, nullptr, 0, nullptr, nullptr)));
  EXPECT_TRUE(failed(setoDoctor(-1, setoFormatText, nullptr, 0, nullptr, nullptr), setoInvalidArgument, "ranks: -1"));
  EXPECT_TRUE(failed(setoDoctor(1, none_of<setoFormat_t>(7), nullptr, 0, nullptr, nullptr), setoInvalidArgument, "format: 7"));
}

}  // namespace
}  // namespace seto::testing

#endif
