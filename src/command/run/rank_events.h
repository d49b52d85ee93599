#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/command/run/lines.h"

namespace seto::command {

// While nobody takes what ranks write, they wait.
enum class Flow : unsigned char { open, held };

// What the ranks of a job do, wherever they run.
class RankEvents {
 public:
  virtual ~RankEvents() = default;
  virtual void wrote(int rank, Stream stream, std::string_view bytes) = 0;
  // After all that it wrote. As waitpid(2) has it.
  virtual void ended(int rank, int wait_status) = 0;
};

// What every rank runs.
struct RankProgram {
  std::vector<std::string> arguments;
  std::vector<std::string> variables;  // "NAME=value", in the place of those of the machine it runs on
  std::string directory;               // empty: the present one
  std::string root;                    // SETO_ROOT. Secret: it proves who belongs to the job
  int ranks = 1;
};

}  // namespace seto::command
