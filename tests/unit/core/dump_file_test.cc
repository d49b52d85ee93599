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
  EXPECT_EQ(dump_path("%x%", 0), "%x%") << "unknown placeholders stay";
}

TEST(DumpFile, numbers_go_before_the_ending) {
  EXPECT_EQ(numbered("/a/dump-3.json", 2), "/a/dump-3.2.json");
  EXPECT_EQ(numbered("/a.b/dump", 3), "/a.b/dump.3");
  EXPECT_EQ(numbered(".hidden", 2), ".hidden.2");
}

TEST(DumpFile, is_replaced_atomically_and_readable_by_its_owner_only) {
  std::string pattern = (files::temp_directory_path() / "seto_dump_XXXXXX").string();
  const files::path directory = mkdtemp(pattern.data());
  const std::string path = (directory / "one.json").string();
  EXPECT_TRUE(write_file(path, std::string(100'000, 'a')).ok());
  EXPECT_TRUE(write_file(path, "short").ok());
  struct stat state {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777U, 0600U);
  EXPECT_EQ(state.st_size, 5);
  // A name that cannot be used leaves no file behind.
  const Status refused = write_file(directory.string(), "x");
  EXPECT_NE(std::string(refused.text()).find(directory.string()), std::string::npos) << refused.text();
  EXPECT_NE(write_file((directory / "none" / "x").string(), "x").code(), Code::ok);
  EXPECT_EQ(std::distance(files::directory_iterator(directory), files::directory_iterator()), 1);
  for (const auto& entry : files::directory_iterator(directory.parent_path()))
    EXPECT_NE(entry.path().string().find(directory.string() + "."), 0U) << "a temporary file was left: " << entry.path();
  files::remove_all(directory);
}

TEST(DumpFile, needs_a_folder_that_exists) {
  std::string pattern = (files::temp_directory_path() / "seto_dump_XXXXXX").string();
  const files::path directory = mkdtemp(pattern.data());
  EXPECT_TRUE(check_folder_of((directory / "one.json").string()).ok());
  EXPECT_TRUE(check_folder_of("one.json").ok()) << "the current folder";
  const Status none = check_folder_of((directory / "none" / "one.json").string());
  EXPECT_EQ(std::string(none.text()),
            "cannot write into the folder " + (directory / "none").string() + ": No such file or directory");
  EXPECT_TRUE(write_file((directory / "file").string(), "x").ok());
  const Status file = check_folder_of((directory / "file" / "one.json").string());
  EXPECT_EQ(std::string(file.text()), "cannot write into " + (directory / "file").string() + ": it is not a folder");
  files::remove_all(directory);
}

}  // namespace
}  // namespace seto
