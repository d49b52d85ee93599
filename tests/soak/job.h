#pragma once

#include <cstdint>
#include <string>

#include "include/seto/seto.h"
#include "tests/soak/board.h"
#include "tests/soak/plan.h"

namespace seto::soak {

class Cutter;

// One generation, as one process sees it.
struct Job {
  const Shape& shape;
  const Plan& plan;
  std::uint64_t generation;
  Board& board;
  std::string directory;  // for files of the run
  Cutter& cutter;
};

// A problem; empty if there is none.
using Problem = std::string;

// The result of a call with its text.
struct CallResult {
  setoResult_t code = setoSuccess;
  std::string text;

  [[nodiscard]] bool ok() const { return code == setoSuccess; }
  [[nodiscard]] bool names(int rank) const;
  [[nodiscard]] std::string description() const;
};
CallResult call_result_of(setoResult_t code);

}  // namespace seto::soak
