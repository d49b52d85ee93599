#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "bench/common/algorithms.h"
#include "bench/common/json.h"
#include "bench/common/plot.h"
#include "bench/common/table.h"

namespace seto::bench {
namespace {

Parsed parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "all_reduce_perf");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(arguments.size()), argv.data());
}

ResultRow row_of(std::uint64_t size, double bandwidth) {
  ResultRow row = {};
  row.size = size;
  row.count = size / 4;
  row.type = "float";
  row.op = "sum";
  row.root = -1;
  row.out_of_place = {.time_us = 12.345,
                      .algorithm_bandwidth = bandwidth / 1.5,
                      .bus_bandwidth = bandwidth,
                      .wrong = 0,
                      .iterations = {},
                      .travelled_in = {},
                      .tolerance = 0,
                      .largest = 0};
  row.in_place = row.out_of_place;
  return row;
}

TEST(Options, NcclTestsFlags) {
  const Parsed parsed = parse({"-b",  "8",  "-e",         "64M", "-f",  "2",  "-n", "30", "-w", "5",       "-c", "1",       "-o",
                               "all", "-d", "half,float", "-r",  "all", "-z", "1",  "-t", "2",  "--ranks", "3",  "-m",      "2",
                               "-a",  "3",  "-C",         "1",   "-I",  "1",  "-S", "1",  "-T", "60",      "-J", "out.json"});
  ASSERT_TRUE(parsed.run) << parsed.text;
  const Options& options = parsed.options;
  EXPECT_EQ(options.sizes.max, 64U << 20);
  EXPECT_EQ(options.sizes.factor, 2U);
  EXPECT_EQ(options.ops.size(), 6U);
  EXPECT_EQ(options.types, (std::vector<setoDataType_t>{setoFloat16, setoFloat32}));
  EXPECT_EQ(options.root, kAllRoots);
  EXPECT_EQ(options.ranks(), 6);
  EXPECT_EQ(options.issue, Issue::barrier_after_each);
  EXPECT_EQ(options.average, Average::max);
  EXPECT_EQ(options.json_path, "out.json");
  EXPECT_TRUE(parse({"--minbytes=1K", "--json", "x"}).run);
}

TEST(Options, FlagsOfGpuMemory) {
  const Parsed parsed = parse({"--memory", "device", "-g", "4", "-t", "2", "-G", "10", "-R", "1"});
  ASSERT_TRUE(parsed.run) << parsed.text;
  EXPECT_EQ(parsed.options.ranks(), 8);
  EXPECT_EQ(parsed.options.graph_launches, 10);
  EXPECT_TRUE(parsed.options.registered);
  const auto reason = [](std::vector<std::string> arguments) { return parse(std::move(arguments)).text; };
  EXPECT_NE(reason({"-g", "2"}).find("-g 2 needs --memory device"), std::string::npos);
  EXPECT_NE(reason({"-G", "1"}).find("-G needs --memory device"), std::string::npos);
  EXPECT_NE(reason({"--memory", "device", "-G", "1", "-I", "1"}).find("-G times whole graphs"), std::string::npos);
  EXPECT_TRUE(parse({"-g", "1", "-G", "0"}).run);
}

TEST(Options, ErrorsNameOptionAndValue) {
  const auto expect = [](std::vector<std::string> arguments, const std::string& word) {
    const Parsed parsed = parse(std::move(arguments));
    EXPECT_FALSE(parsed.run);
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_NE(parsed.text.find(word), std::string::npos) << parsed.text;
  };
  expect({"-n", "many"}, "many");
  expect({"-n", "0"}, "--iters does not take '0': give a whole number, 1 or more (");
  expect({"-C", "yes"}, "give 0 or 1");
  expect({"-o", "sun"}, "give sum, prod, max, min, avg, mulsum, several");
  expect({"-b", "2M", "-e", "1M"}, "-b 2M is larger than -e 1M (");
  expect({"-e", "1K"}, "-b 32M is larger than -e 1K: give -b too");
  expect({"-b", "64M"}, "-b 64M is larger than -e 32M: give -e too");
  expect({"--plot", "x.png"}, "ends in .svg");
  expect({"--bogus"}, "--bogus");
  expect({"-n"}, "-n");
  expect({"-d", "float,quad"}, "quad");
  expect({"-r", "2", "--ranks", "2"}, "not a rank");
  expect({"-i", "0"}, "stepbytes");
  expect({"extra"}, "extra");
  const Parsed help = parse({"-h"});
  EXPECT_FALSE(help.run);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.text.find("--stepfactor"), std::string::npos);
}

TEST(Table, RowsMatchWhatParsersOfNcclTestsExpect) {
  const std::regex pattern(R"(^\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(-?\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+|N/A))"
                           R"(\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+|N/A)\n$)");
  ;
  EXPECT_TRUE(std::regex_match(row_text(row_of(1024, 3.25), {}), pattern)) << row_text(row_of(1024, 3.25), {});
  ResultRow unchecked = row_of(1 << 30, 12345.6);
  unchecked.out_of_place.wrong.reset();
  EXPECT_TRUE(std::regex_match(row_text(unchecked, {}), pattern)) << row_text(unchecked, {});
}

TEST(Table, OneRankSendsNothingAndTheHeadingSaysSo) {
  Options options;
  EXPECT_NE(heading_text({}, options).find("# one rank sends nothing; try --ranks 2\n"), std::string::npos);
  options.threads = 2;
  EXPECT_EQ(heading_text({}, options).find("one rank"), std::string::npos);
}

TEST(Algorithms, APinIsRejectedIfTheCollectiveHasNoSuchAlgorithm) {
  const Program program = {
      .name = "all_reduce_perf", .collective = "all_reduce", .layout = whole_layout, .call = nullptr, .expected = nullptr};
  const std::string json = R"({"algorithms":{"all_reduce":{"value":"one_shot, ring, double_tree"},"reduce":{"value":"tree"}}})";
  EXPECT_EQ(check_algorithm(program, "ring", json), "");
  EXPECT_EQ(check_algorithm(program, "tree", json), "--algorithm: all_reduce has no tree; it has one_shot, ring, double_tree");
  EXPECT_EQ(check_algorithm(program, "tree", "what?"), "") << "then the library decides";
  Program without = program;
  without.collective = nullptr;
  EXPECT_NE(check_algorithm(without, "ring", json).find("no algorithms to choose from"), std::string::npos);
}

TEST(Table, StatesTheErrorThatItAccepts) {
  ResultRow row = row_of(1 << 20, 3.25);
  row.codec = "none";
  EXPECT_EQ(tolerance_text(row), "") << "an exact sum is compared exactly";
  row.travelled_in = "fp16";
  row.in_place->tolerance = 2.5e10;
  row.in_place->largest = 1e13;
  EXPECT_DOUBLE_EQ(relative_tolerance(row), 0.0025);
  EXPECT_EQ(tolerance_text(row),
            "# 1048576 bytes travelled in fp16: an error of at most 0.25 % of the largest number of all inputs is accepted "
            "(setoCodecErrorBound); the library chose the codec, SETO_CODEC=none forbids it\n");
  row.codec = "fp16";
  row.travelled_in = "";
  EXPECT_EQ(tolerance_text(row),
            "# 1048576 bytes travelled in an unknown codec: an error of at most 0.25 % of the largest number of all inputs is "
            "accepted (setoCodecErrorBound)\n");
}

TEST(Table, ConclusionSaysOkOrFailed) {
  EXPECT_EQ(conclusion_text("x_perf", {0, 2.5}),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2.5\n#\n# Collective test concluded: x_perf\n");
  EXPECT_NE(conclusion_text("x_perf", {3, 2.5}).find(": 3 FAILED\n"), std::string::npos);
}

TEST(Results, TotalsCountBothPlacements) {
  std::vector<ResultRow> rows = {row_of(8, 2), row_of(16, 4)};
  rows[1].in_place->wrong = 5;
  rows[0].in_place.reset();
  const Totals totals = totals_of(rows);
  EXPECT_EQ(totals.wrong, 5U);
  EXPECT_DOUBLE_EQ(totals.average_bus_bandwidth, 10.0 / 3);
}

TEST(Results, StatisticsOfIterations) {
  std::vector<double> times;
  for (int i = 100; i >= 1; --i) times.push_back(i);
  const IterationStatistics statistics = statistics_of(times);
  EXPECT_EQ(statistics.min_us, 1);
  EXPECT_EQ(statistics.max_us, 100);
  EXPECT_EQ(statistics.p50_us, 50);
  EXPECT_EQ(statistics.p99_us, 99);
  EXPECT_DOUBLE_EQ(statistics.mean_us, 50.5);
  EXPECT_EQ(statistics.slowest_us, times);
}

TEST(Json, HasTheFieldsThatReadersOfNcclTestsNeed) {
  Options options;
  Report report;
  report.heading = {"all_reduce_perf", 100, 100, "host", "cpu", {7, 8}, {"host", "host"}};
  report.rows = {row_of(1024, 3)};
  const auto json = nlohmann::json::parse(json_text(report, options));
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["results"][0]["size"], 1024);
  EXPECT_EQ(json["results"][0]["out_of_place"]["bus_bw"], 3.0);
  EXPECT_EQ(json["results"][0]["in_place"]["nwrong"], 0);
  EXPECT_EQ(json["config"]["devices"].size(), 2U);
  EXPECT_EQ(json["out_of_bounds"]["okay"], true);
  EXPECT_EQ(json["average_bus_bandwidth"]["bandwidth"], 3.0);
}

TEST(Plot, ReadsBackWhatJsonWrote) {
  Report report;
  report.heading.program = "all_reduce_perf";
  report.rows = {row_of(1024, 3), row_of(2048, 4)};
  std::string label;
  const auto rows = rows_from_json(json_text(report, {}), label);
  ASSERT_TRUE(rows);
  EXPECT_EQ(label, "all_reduce_perf");
  const auto series = series_of(*rows, "run");
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(series[0].points[1].bandwidth, 4);
  EXPECT_FALSE(rows_from_json("{", label));
  EXPECT_FALSE(rows_from_json("[]", label));
}

TEST(Files, UnusableFilesAreDetectedBeforeTheRun) {
  const std::string folder = testing::TempDir();
  const std::string path = folder + "seto_report_test_" + std::to_string(getpid());
  EXPECT_EQ(check_writable(path), "");
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "the check made a file";
  EXPECT_NE(check_writable(folder).find("directory"), std::string::npos);
  EXPECT_EQ(check_writable("/nowhere/x.json"), "cannot write /nowhere/x.json: No such file or directory");

  std::vector<PlotSeries> series;
  EXPECT_EQ(add_series(path, series), "cannot read " + path + ": No such file or directory");
  ASSERT_EQ(write_file(path, "{}"), "");
  EXPECT_EQ(check_writable(path), "");
  EXPECT_EQ(add_series(path, series), path + " is not a result file of -J");
  Report report = {};
  report.rows = {row_of(1024, 3)};
  ASSERT_EQ(write_file(path, json_text(report, {})), "");
  EXPECT_EQ(add_series(path + "=before", series), "");
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(series[0].label, "before");
  std::remove(path.c_str());
}

TEST(Plot, DrawsPositivePointsAndEscapesLabels) {
  const std::string svg = plot_svg("a & b", {{"one <1>", {{8, 0}, {1024, 1.5}, {2048, 2}}}});
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  EXPECT_NE(svg.find("one &lt;1&gt;"), std::string::npos);
  const std::regex peer_group("<circle");
  EXPECT_EQ(std::distance(std::sregex_iterator(svg.begin(), svg.end(), peer_group), std::sregex_iterator()), 2);
  EXPECT_NE(plot_svg("empty", {}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace seto::bench
