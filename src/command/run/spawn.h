#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "src/base/result.h"

namespace seto::command {

// What a child starts with. A descriptor of -1: ours.
struct SpawnOptions {
  std::vector<std::string> arguments;    // the first is the program, looked up in PATH if it has no slash
  std::vector<std::string> environment;  // all of it, "NAME=value" each
  std::string directory;                 // empty: ours
  int input = -1;
  int output = -1;
  int error = -1;
};

// The child is killed when this thread ends, has no signal blocked and no descriptor of ours but these (which are ours to close).
// By vfork: a fork would copy the page tables of this process for each of many children. Returns once the program runs; that it
// cannot be run is a failure here, not an exit status.
[[nodiscard]] Result<pid_t> spawn(const SpawnOptions& options);

// "exited with status 3", "was killed by signal 9 (SIGKILL)".
[[nodiscard]] std::string end_text(int wait_status);
// As a shell gives it: the status, or 128 + signal.
[[nodiscard]] int exit_code(int wait_status);

// The environment of this process with these variables in the place of its own.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<std::string>& changes);

}  // namespace seto::command
