#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace seto::command {

struct RunOptions {
  int ranks = 0;  // 0: as many as the hosts have slots
  std::string hosts;
  std::string host_file;
  std::vector<std::string> variables;  // NAME=VALUE, or NAME for its value in this process
  bool prefix = false;
  bool no_prefix = false;
  double timeout_s = 0;
  double grace_s = 5;
  std::string remote_shell = "ssh";
  std::string remote_seto;  // empty: the path of this command
  std::vector<std::string> program;
};

// Runs the ranks of a job, here and on other hosts, and waits for them. Returns the exit status.
int run(const RunOptions& options);

}  // namespace seto::command
