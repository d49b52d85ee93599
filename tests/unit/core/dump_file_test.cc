#include "src/core/dump/dump_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace seto {
namespace {

namespace files = std::filesystem;

TEST(DumpFile, names_host_process_and_rank) {
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(dump_path("/tmp/%h/%p-%r.json", 12), "/tmp/" + host_name() + "/" + process + "-12.json");
  EXPECT_EQ(dump_path("100%%", 0), "100%");
  EXPECT_EQ(dump_path("%x%", 0), "%x%") << "what means nothing stays";
}

TEST(DumpFile, numbers_go_before_the_ending) {
  EXPECT_EQ(numbered("/a/dump-3.json", 2), "/a/dump-3.2.json");
  EXPECT_EQ(numbered("/a.b/dump", 3), "/a.b/dump.3");
  EXPECT_EQ(numbered(".hidden", 2), ".hidden.2");
}

TEST(DumpFile, is_replaced_as_a_whole_and_is_its_owners) {
  std::string pattern = (files::temp_directory_path() / "seto-dump-XXXXXX").string();
  const files::path directory = mkdtemp(pattern.data());
  const std::string path = (directory / "one.json").string();
  EXPECT_TRUE(write_file(path, std::string(100'000, 'a')).ok());
  EXPECT_TRUE(write_file(path, "short").ok());
  struct stat state {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777U, 0600U);
  EXPECT_EQ(state.st_size, 5);
  // A name that cannot be taken leaves nothing behind.
  const Status refused = write_file(directory.string(), "x");
  EXPECT_NE(std::string(refused.text()).find(directory.string()), std::string::npos) << refused.text();
  EXPECT_NE(write_file((directory / "none" / "x").string(), "x").code(), Code::ok);
  EXPECT_EQ(std::distance(files::directory_iterator(directory), files::directory_iterator()), 1);
  for (const auto& entry : files::directory_iterator(directory.parent_path()))
    EXPECT_NE(entry.path().string().find(directory.string() + "."), 0U) << "a draft was left: " << entry.path();
  files::remove_all(directory);
}

}  // namespace
}  // namespace seto
