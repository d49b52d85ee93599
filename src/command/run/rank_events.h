#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/command/run/lines.h"

namespace seto::command {

// held: output is not read, so the ranks block in their writes.
enum class Flow : unsigned char { open, held };

// Events of the ranks of a job, local or remote.
class RankEvents {
 public:
  virtual ~RankEvents() = default;
  virtual void wrote(int rank, Stream stream, std::string_view bytes) = 0;
  // Called after all output of the rank. `wait_status` as waitpid(2) returns it.
  virtual void ended(int rank, int wait_status) = 0;
};

// The program that every rank runs.
struct RankProgram {
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  // "NAME=value"; replace variables of the machine on which the rank runs
  std::string directory;               // empty: the current directory
  std::string root;                    // SETO_ROOT. Secret: it proves membership of the job
  int ranks = 1;
};

}  // namespace seto::command
