// Lines in a file that processes share: rotation, two writers, a full disk, too many lines.

#include "src/core/record/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/log.h"
#include "tests/support/child_process.h"

namespace seto {
namespace {

namespace files = std::filesystem;
using testing::ChildProcess;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after_ms(60'000); }

// A folder of its own for each test, which is also where the log goes.
class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() {
    std::string pattern = (files::temp_directory_path() / "seto_audit_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~AuditLogTest() override {
    (void)open_log("").ok();
    files::remove_all(folder_);
  }
  [[nodiscard]] std::string path(const std::string& name = "audit") const { return (folder_ / name).string(); }

  static std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // The lines of the audit file and of those that it was renamed to, oldest first.
  [[nodiscard]] std::vector<std::string> all_lines() const {
    std::vector<std::string> all;
    for (int number = 1; files::exists(path() + "." + std::to_string(number)); ++number)
      for (std::string& line : lines_of(path() + "." + std::to_string(number))) all.push_back(std::move(line));
    for (std::string& line : lines_of(path())) all.push_back(std::move(line));
    return all;
  }

  files::path folder_;
};

TEST(AuditTime, IsThatOfRfc3339) {
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(1'772'352'000'123'456), "2026-03-01T08:00:00.123456Z");
}

TEST_F(AuditLogTest, LinesAreAppendedInOrder) {
  for (const char* const line : {"one", "two"}) {
    AuditLog log({path()});
    log.add(line);
    log.add(std::string(line) + " more");
    ASSERT_TRUE(log.flush(soon()));
    EXPECT_EQ(log.lost(), 0U);
  }
  EXPECT_THAT(lines_of(path()), ElementsAre("one", "one more", "two", "two more"));
  EXPECT_EQ(files::status(path()).permissions(), files::perms::owner_read | files::perms::owner_write);
}

TEST_F(AuditLogTest, TheEndOfALogWaitsForItsLines) {
  { AuditLog({path()}).add("last"); }
  EXPECT_THAT(lines_of(path()), ElementsAre("last"));
}

TEST_F(AuditLogTest, AFileIsRenamedBeforeItExceedsItsLimit) {
  {
    AuditLog log({path(), 25});
    for (int number = 0; number < 7; ++number) log.add("line " + std::to_string(number));  // 7 bytes each
    log.add(std::string(100, 'x'));                                                        // alone larger than the limit
    ASSERT_TRUE(log.flush(soon()));
  }
  EXPECT_THAT(lines_of(path("audit.1")), ElementsAre("line 0", "line 1", "line 2"));
  EXPECT_THAT(lines_of(path("audit.2")), ElementsAre("line 3", "line 4", "line 5"));
  EXPECT_THAT(lines_of(path("audit.3")), ElementsAre("line 6"));
  EXPECT_THAT(lines_of(path()), ElementsAre(std::string(100, 'x')));
}

TEST_F(AuditLogTest, AFileThatAnotherProgramMovedAwayIsMadeAnew) {
  AuditLog log({path()});
  log.add("one");
  ASSERT_TRUE(log.flush(soon()));
  files::rename(path(), path("moved"));
  log.add("two");
  ASSERT_TRUE(log.flush(soon()));
  EXPECT_THAT(lines_of(path("moved")), ElementsAre("one"));
  EXPECT_THAT(lines_of(path()), ElementsAre("two"));
}

TEST_F(AuditLogTest, TwoProcessesMayAppendAtOnce) {
  constexpr int kLines = 300;
  const auto write = [&](const std::string& name) {
    AuditLog log({path(), 4096});
    for (int number = 0; number < kLines; ++number) {
      log.add(name + " " + std::to_string(number) + std::string(100, '.'));
      if (number % 10 == 0 && !log.flush(soon())) return false;
    }
    return log.flush(soon()) && log.lost() == 0;
  };
  ChildProcess one([&] { return write("one"); });
  ChildProcess other([&] { return write("other"); });
  EXPECT_TRUE(one.wait());
  EXPECT_TRUE(other.wait());
  const std::vector<std::string> all = all_lines();
  const std::set<std::string> different(all.begin(), all.end());
  EXPECT_EQ(all.size(), 2U * kLines);
  EXPECT_EQ(different.size(), 2U * kLines) << "each line is there once, and whole";
  for (const std::string& line : all) EXPECT_EQ(line.substr(line.find('.')), std::string(100, '.'));
  EXPECT_TRUE(files::exists(path("audit.10")));
}

TEST_F(AuditLogTest, AFullDiskIsSaidOnceAndLinesAreCounted) {
  ASSERT_TRUE(open_log(path("log")).ok());
  AuditLog log({"/dev/full"});
  for (int round = 0; round < 3; ++round) {
    log.add("a");
    log.add("b");
    ASSERT_TRUE(log.flush(soon()));
  }
  EXPECT_EQ(log.lost(), 6U);
  const std::vector<std::string> said = lines_of(path("log"));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("SETO_AUDIT_FILE: cannot append to /dev/full: No space left on device"));
}

TEST_F(AuditLogTest, TheFileStatesHowManyLinesAreMissing) {
  ASSERT_TRUE(open_log(path("log")).ok());
  AuditLog log({path("folder/audit")});
  log.add("a");
  log.add("b");
  ASSERT_TRUE(log.flush(soon()));
  files::create_directory(path("folder"));
  log.add("c");
  ASSERT_TRUE(log.flush(soon()));
  EXPECT_EQ(log.lost(), 2U);
  const std::vector<std::string> lines = lines_of(path("folder/audit"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr(R"({"event":"lines_lost","time":")"));
  EXPECT_THAT(lines[0], HasSubstr(R"("lines":2})"));
  EXPECT_EQ(lines[1], "c");
  log.add("d");
  ASSERT_TRUE(log.flush(soon()));
  EXPECT_EQ(lines_of(path("folder/audit")).size(), 3U) << "it is stated once";
}

TEST_F(AuditLogTest, MoreLinesThanMayWaitAreLostAndNobodyWaits) {
  AuditLog log({path(), 64 << 20, 0});
  log.add("a");
  log.add("b");
  EXPECT_TRUE(log.flush(soon()));
  EXPECT_EQ(log.lost(), 2U);
  EXPECT_FALSE(files::exists(path()));
}

TEST_F(AuditLogTest, AProcessHasOneLogForEachFile) {
  const std::shared_ptr<AuditLog> one = AuditLog::of_process({path()});
  EXPECT_EQ(AuditLog::of_process({path()}), one);
  EXPECT_NE(AuditLog::of_process({path("other")}), one);
}

}  // namespace
}  // namespace seto
