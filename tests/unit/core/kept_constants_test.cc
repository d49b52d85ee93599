#include "src/core/choice/kept_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "src/core/choice/boundaries.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

const MeasuredMachine kMachine{"A Processor (R) 9 @ 3.1GHz", "6.1.0-18-amd64", 16, 1, "1"};
const KeptConstants kConstants{{2.5e-7, 12.5e9, 6.25e-8, 200e9, 1 << 20}, 3};

void expect_same(const KeptConstants& one, const KeptConstants& other) {
  EXPECT_EQ(one.jobs, other.jobs);
  EXPECT_DOUBLE_EQ(one.node.latency_seconds, other.node.latency_seconds);
  EXPECT_DOUBLE_EQ(one.node.bytes_per_second, other.node.bytes_per_second);
  EXPECT_DOUBLE_EQ(one.node.message_seconds, other.node.message_seconds);
  EXPECT_DOUBLE_EQ(one.node.cached_bytes_per_second, other.node.cached_bytes_per_second);
  EXPECT_DOUBLE_EQ(one.node.cached_bytes, other.node.cached_bytes);
}

class KeptConstantsFile : public ::testing::Test {
 protected:
  ~KeptConstantsFile() override { std::filesystem::remove_all(root_); }

  const std::string root_ = ::testing::TempDir() + "seto_kept_" + std::to_string(std::random_device{}());
  const KeptFiles files_{root_ + "/not/there/yet"};
};

TEST_F(KeptConstantsFile, IsReadAsItWasWritten) {
  EXPECT_FALSE(files_.read(kMachine));
  ASSERT_TRUE(files_.write(kMachine, kConstants).ok());
  const std::optional<KeptConstants> read = files_.read(kMachine);
  ASSERT_TRUE(read);
  expect_same(*read, kConstants);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files_.folder()), {}), 1) << "nothing else stays in the folder";
}

// Files of earlier versions do not name it, and those versions would refuse a file that does.
TEST_F(KeptConstantsFile, DoesNotContainWhatFollowsFromTheOthers) {
  const std::string text = kept_text(kMachine, kConstants);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("long_message")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("last_level")));
  const TierCost read = parse_kept(text, kMachine).value().node;
  EXPECT_DOUBLE_EQ(read.long_message_bytes, long_message_bytes_of(read));
  TierCost slow = kConstants.node;
  slow.latency_seconds *= 16;
  const TierCost read_slow = parse_kept(kept_text(kMachine, {slow, 3}), kMachine).value().node;
  EXPECT_DOUBLE_EQ(read_slow.long_message_bytes, 16 * 2.5e-7 * 12.5e9 / 2);
}

TEST_F(KeptConstantsFile, OfAnotherProcessorKernelNumberOfCoresCrowdingOrBuildIsAnother) {
  std::vector<MeasuredMachine> others(5, kMachine);
  others[0].processor = "A Processor (R) 8 @ 3.1GHz";
  others[1].kernel = "6.1.0-19-amd64";
  others[2].cores = 8;
  others[3].ranks_a_core = 2;
  others[4].build = "1-thread";
  const std::string text = kept_text(kMachine, kConstants);
  EXPECT_TRUE(parse_kept(text, kMachine).ok());
  for (const MeasuredMachine& other : others) {
    EXPECT_NE(files_.path_of(other), files_.path_of(kMachine));
    EXPECT_THAT(std::string(parse_kept(text, other).status().text()), HasSubstr("of another machine"));
  }
}

TEST_F(KeptConstantsFile, ThatIsForeignIsIgnored) {
  MeasuredMachine other = kMachine;
  other.kernel = "5.10";
  ASSERT_TRUE(files_.write(other, kConstants).ok());
  std::filesystem::rename(files_.path_of(other), files_.path_of(kMachine));
  EXPECT_FALSE(files_.read(kMachine));
  ASSERT_TRUE(files_.write(kMachine, kConstants).ok()) << "it is replaced";
  EXPECT_TRUE(files_.read(kMachine));
}

TEST_F(KeptConstantsFile, ThatIsCutShortAnywhereIsIgnored) {
  const std::string text = kept_text(kMachine, kConstants);
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(parse_kept(text.substr(0, length), kMachine).ok()) << length;
}

TEST_F(KeptConstantsFile, WithOtherContentIsIgnored) {
  const std::string text = kept_text(kMachine, kConstants);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parse_kept(changed, kMachine);
  };
  EXPECT_TRUE(with("jobs 3", "jobs 4").ok());
  EXPECT_FALSE(with("jobs 3", "jobs -3").ok());
  EXPECT_FALSE(with("jobs 3", "jobs 0").ok());
  EXPECT_FALSE(with("node.latency_us 0.25", "node.latency_us nan").ok());
  EXPECT_FALSE(with("node.latency_us 0.25", "node.latency_us 0").ok());
  EXPECT_FALSE(with("node.cached_kilobytes 1024", "node.cached_kilobytes -1").ok());
  EXPECT_FALSE(with("node.latency_us 0.25", "world.latency_us 0.25").ok());
  std::string long_comment(5000, '#');
  long_comment += "\nend";
  EXPECT_FALSE(with("end", long_comment).ok());
}

TEST_F(KeptConstantsFile, IsNeverSeenHalfWritten) {
  ASSERT_TRUE(files_.write(kMachine, kConstants).ok());
  constexpr int kWrites = 200;
  std::atomic<int> writing{2};
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i)
    writers.emplace_back([&] {
      for (int write = 0; write < kWrites; ++write) EXPECT_TRUE(files_.write(kMachine, kConstants).ok());
      --writing;
    });
  while (writing > 0) EXPECT_TRUE(files_.read(kMachine));
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files_.folder()), {}), 1);
}

TEST_F(KeptConstantsFile, IsListedWithThoseOfOtherMachinesAndBrokenOnes) {
  MeasuredMachine other = kMachine;
  other.processor = "Other";
  EXPECT_TRUE(files_.all().empty());
  ASSERT_TRUE(files_.write(other, kConstants).ok());
  ASSERT_TRUE(files_.write(kMachine, kConstants).ok());
  std::ofstream(files_.folder() + "/z.txt") << "no constants\n";
  const std::vector<KeptFiles::Listed> all = files_.all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].machine.text(), kMachine.text());
  EXPECT_EQ(all[1].machine.text(), other.text());
  for (int i = 0; i < 2; ++i) expect_same(all[static_cast<std::size_t>(i)].constants.value(), kConstants);
  EXPECT_EQ(all[2].file, "z.txt");
  EXPECT_FALSE(all[2].constants.ok());
}

TEST_F(KeptConstantsFile, WithoutAFolderIsNeitherReadNorWritten) {
  const KeptFiles none("");
  EXPECT_FALSE(none.read(kMachine));
  EXPECT_FALSE(none.write(kMachine, kConstants).ok());
  const KeptFiles no_folder("/dev/null/seto");
  EXPECT_FALSE(no_folder.read(kMachine));
  EXPECT_THAT(std::string(no_folder.write(kMachine, kConstants).text()), HasSubstr("/dev/null/seto cannot be made"));
}

TEST_F(KeptConstantsFile, LiesWhereTheUserKeepsSuchFiles) {
  setenv("XDG_CACHE_HOME", "/a/cache", 1);
  EXPECT_EQ(KeptFiles::of_user().folder(), "/a/cache/seto");
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", "/a/home", 1);
  for (const char* relative : {"", "cache"}) {
    setenv("XDG_CACHE_HOME", relative, 1);
    EXPECT_EQ(KeptFiles::of_user().folder(), "/a/home/.cache/seto");
  }
  unsetenv("HOME");
  EXPECT_EQ(KeptFiles::of_user().folder(), "");
  if (home != nullptr) setenv("HOME", before.c_str(), 1);
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
}

TEST(KeptConstants, AreTheBestOfSeveralJobs) {
  KeptConstants kept;
  kept.take({3e-7, 10e9, 1e-7});
  expect_same(kept, {{3e-7, 10e9, 1e-7}, 1});
  kept.take({9e-5, 12e9, 2e-5});  // the machine was busy while messages were short
  expect_same(kept, {{3e-7, 12e9, 1e-7}, 2});
  EXPECT_DOUBLE_EQ(kept.node.long_message_bytes, long_message_bytes_of(kept.node));
  kept.take({1e-7, 1e9, 3e-7});
  expect_same(kept, {{1e-7, 12e9, 5e-8}, 3});  // a latency contains the cost of two messages
  EXPECT_FALSE(kept.suffices());
  kept.take({1, 1, 1});
  EXPECT_TRUE(kept.suffices());
}

TEST(KeptConstants, NameThisMachine) {
  const MeasuredMachine here = MeasuredMachine::here(3, 1.5);
  EXPECT_FALSE(here.processor.empty());
  EXPECT_THAT(here.text(), HasSubstr("\ncores 3\nranks_a_core 1.5\n"));
  EXPECT_EQ(here.file_name().find_first_of("/ ()@"), std::string::npos) << here.file_name();
}

}  // namespace
}  // namespace seto
