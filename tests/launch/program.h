#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/fd.h"
#include "tests/support/free_port.h"

namespace seto::testing {

struct Ended {
  int status = -1;   // of the process, 128 + signal; -1: it did not end in time
  std::string text;  // of both streams
};

// By its place in the build directory: "seto", "examples/03_env".
std::string built(const std::string& place);
bool is_there(const std::string& program);
// The first of these names in PATH; empty: none.
std::string found(const std::vector<std::string>& names);

// A program as a user starts it, with no variables of a launcher around. It dies with the test, and everything that it started
// can be found by a mark in its environment.
class Program final {
 public:
  // `variables`: "NAME=value", beside ours; "NAME" takes ours away.
  explicit Program(std::vector<std::string> arguments, const std::vector<std::string>& variables = {},
                   const std::string& input = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Blocks until it has written that. False at its end, and after 30 s.
  [[nodiscard]] bool writes(const std::string& part);
  // Blocks until it has ended, or so long.
  Ended wait(int seconds = 60);
  [[nodiscard]] const std::string& text() const { return text_; }

  // Processes with our mark, itself included; until they are gone, or for so long.
  [[nodiscard]] std::vector<pid_t> family() const;
  [[nodiscard]] bool family_ends(int seconds) const;

 private:
  bool read_some(int timeout_ms);

  std::string mark_;
  pid_t pid_ = -1;
  Fd from_;
  Fd process_;  // pidfd
  std::string text_;
  bool all_read_ = false;
};

// The same at once.
Ended run(std::vector<std::string> arguments, const std::vector<std::string>& variables = {}, const std::string& input = {});

// A directory of a test, gone with it.
class Scratch final {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  // A file with this text, which may be run.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace seto::testing
