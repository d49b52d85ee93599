#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "src/base/result.h"

namespace seto::command {

// How to start a child. Descriptor -1 means: inherit that of this process.
struct SpawnOptions {
  std::vector<std::string> arguments;    // the first is the program, looked up in PATH if it contains no slash
  std::vector<std::string> environment;  // the complete environment, "NAME=value" each
  std::string directory;                 // empty: the current directory
  int input = -1;
  int output = -1;
  int error = -1;
};

// Starts a child that is killed when this process ends. Only the main thread may call it, because the kernel kills the child when
// the thread that started it ends (PR_SET_PDEATHSIG): a call from another thread is refused. The child has no blocked signals and
// only these descriptors, which the caller still closes. It uses vfork, because fork would copy the page tables of this process
// for every child. It returns once the program runs; a program that cannot be run is a failure here, not an exit status.
[[nodiscard]] Result<pid_t> spawn(const SpawnOptions& options);

// "exited with status 3", "was killed by signal 9 (SIGKILL)".
[[nodiscard]] std::string end_text(int wait_status);
// The exit code as a shell returns it: the status, or 128 + signal.
[[nodiscard]] int exit_code(int wait_status);

// The environment of this process with some variables replaced.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<std::string>& changes);

}  // namespace seto::command
