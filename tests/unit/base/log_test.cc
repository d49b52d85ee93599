#include "src/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace seto {
namespace {

// The level belongs to the process, so each test restores the level of a fresh process.
class Log : public testing::Test {
 protected:
  void TearDown() override { set_log_level(LogLevel::warn); }
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The lines without the time that each must begin with, as 2026-11-29T07:45:01.123Z. A line without one stays as it is.
std::string without_times(const std::string& lines) {
  static constexpr std::string_view kForm = "0000-00-00T00:00:00.000Z ";
  std::istringstream from(lines);
  std::string result;
  for (std::string line; std::getline(from, line);) {
    std::string form = line.substr(0, kForm.size());
    for (char& one : form)
      if (std::isdigit(static_cast<unsigned char>(one)) != 0) one = '0';
    result += (form == kForm ? line.substr(kForm.size()) : line) + '\n';
  }
  return result;
}

std::filesystem::path fresh_path(const char* name) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / (std::string(name) + std::to_string(::getpid()));
  std::filesystem::remove(path);
  return path;
}

TEST_F(Log, LineHasPrefixLevelAndText) {
  const LogCapture capture;
  SETO_LOG(warn, "%d streams", 7);
  EXPECT_EQ(capture.lines(), std::vector<std::string>{"seto warn: 7 streams"});
}

TEST_F(Log, LineNamesRankAndEpochWhereKnown) {
  const LogCapture capture;
  SETO_LOG_AS(error, (LogOrigin{.rank = 3, .epoch = 2}), "lost rank %d", 5);
  EXPECT_EQ(capture.lines(), std::vector<std::string>{"seto error: [rank 3 epoch 2] lost rank 5"});
}

TEST_F(Log, OnlyTheLevelAndMoreSevereOnesAreWritten) {
  const LogCapture capture;
  set_log_level(LogLevel::info);
  SETO_LOG(error, "one");
  SETO_LOG(warn, "two");
  SETO_LOG(info, "three");
  SETO_LOG(debug, "four");
  EXPECT_EQ(capture.lines().size(), 3U);
  EXPECT_FALSE(capture.contains("four"));
}

TEST_F(Log, ArgumentsOfASuppressedLineAreNotEvaluated) {
  int evaluations = 0;
  SETO_LOG(debug, "%d", ++evaluations);
  EXPECT_EQ(evaluations, 0);
}

TEST_F(Log, LongLineIsCutAtTheLimit) {
  const LogCapture capture;
  const std::string text(3 * kLogLineLimit, 'x');
  SETO_LOG(warn, "%s", text.c_str());
  EXPECT_EQ(capture.lines().at(0).size(), static_cast<std::size_t>(kLogLineLimit) - 1);
}

TEST_F(Log, FileIsAppendedTo) {
  const auto path = fresh_path("seto_log_append");
  ASSERT_TRUE(open_log(path).ok());
  SETO_LOG(warn, "first");
  ASSERT_TRUE(open_log(path).ok());
  SETO_LOG(warn, "second");
  ASSERT_TRUE(open_log("").ok());
  EXPECT_EQ(without_times(contents(path)), "seto warn: first\nseto warn: second\n");
  std::filesystem::remove(path);
}

TEST_F(Log, WithoutAFileLinesGoToStandardError) {
  testing::internal::CaptureStderr();
  SETO_LOG(error, "seen");
  EXPECT_EQ(without_times(testing::internal::GetCapturedStderr()), "seto error: seen\n");
}

TEST_F(Log, ALineBeginsWithTheTimeInUtc) {
  const std::time_t before = std::time(nullptr);
  testing::internal::CaptureStderr();
  SETO_LOG(warn, "now");
  const std::string line = testing::internal::GetCapturedStderr();
  std::tm told{};
  ASSERT_NE(strptime(line.c_str(), "%Y-%m-%dT%H:%M:%S", &told), nullptr) << line;
  const std::time_t seconds = timegm(&told);
  EXPECT_GE(seconds, before) << line;
  EXPECT_LE(seconds, std::time(nullptr)) << line;
}

TEST_F(Log, FileThatCannotBeOpenedIsNamedAndTheOldOneStays) {
  const auto path = fresh_path("seto_log_kept");
  ASSERT_TRUE(open_log(path).ok());
  const Status status = open_log("/nonexistent/folder/log");
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.text(), "cannot open the log file '/nonexistent/folder/log': No such file or directory");
  SETO_LOG(warn, "still here");
  ASSERT_TRUE(open_log("").ok());
  EXPECT_EQ(without_times(contents(path)), "seto warn: still here\n");
  std::filesystem::remove(path);
}

TEST_F(Log, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  const auto path = fresh_path("seto_log_threads");
  ASSERT_TRUE(open_log(path).ok());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([thread] {
      for (int line = 0; line < kLines; ++line) SETO_LOG_AS(warn, (LogOrigin{.rank = thread}), "%s", "0123456789abcdef");
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(open_log("").ok());

  std::ifstream file(path);
  std::vector<int> seen(kThreads);
  for (std::string line; std::getline(file, line);) {
    int rank = -1;
    char text[32] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%*s seto warn: [rank %d epoch 0] %31s", &rank, text), 2) << line;
    ASSERT_STREQ(text, "0123456789abcdef");
    ++seen.at(static_cast<std::size_t>(rank));
  }
  EXPECT_EQ(seen, std::vector<int>(kThreads, kLines));
  std::filesystem::remove(path);
}

TEST_F(Log, LevelsHaveTheNamesThatTheVariableAccepts) {
  EXPECT_EQ(name_of(LogLevel::error), "error");
  EXPECT_EQ(name_of(LogLevel::warn), "warn");
  EXPECT_EQ(name_of(LogLevel::info), "info");
  EXPECT_EQ(name_of(LogLevel::debug), "debug");
}

}  // namespace
}  // namespace seto
