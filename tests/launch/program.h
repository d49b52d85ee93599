#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/fd.h"
#include "tests/support/free_port.h"

namespace seto::testing {

struct Ended {
  int status = -1;   // exit status, or 128 + signal; -1: it did not end in time
  std::string text;  // output of both streams
};

// The path of a program of the build directory: "seto", "examples/03_env".
std::string built(const std::string& place);
bool is_there(const std::string& program);
// The path of the first of these names in PATH; empty if there is none.
std::string found(const std::vector<std::string>& names);

// A program as a user starts it, without variables of a launcher. It ends with the test, and a mark in its environment identifies
// all processes that it started.
class Program final {
 public:
  // `variables`: "NAME=value" adds a variable to those of this process; "NAME" removes one.
  explicit Program(std::vector<std::string> arguments, const std::vector<std::string>& variables = {},
                   const std::string& input = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Blocks until the program has written this part. Returns false at its end, and after 30 s.
  [[nodiscard]] bool writes(const std::string& part);
  // Blocks until the program has ended, at most this long.
  Ended wait(int seconds = 60);
  [[nodiscard]] const std::string& text() const { return text_; }

  // The processes with the mark, including the program itself.
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

// Starts a program and waits for its end.
Ended run(std::vector<std::string> arguments, const std::vector<std::string>& variables = {}, const std::string& input = {});

// A temporary directory of a test.
class Scratch final {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }
  // Writes an executable file with this text.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace seto::testing
