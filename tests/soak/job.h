#pragma once

#include <cstdint>
#include <string>

#include "include/seto/seto.h"
#include "tests/soak/board.h"
#include "tests/soak/plan.h"

namespace seto::soak {

// One generation, as a process sees it.
struct Job {
  const Shape& shape;
  const Plan& plan;
  std::uint64_t generation;
  Board& board;
  std::string directory;  // for files of the run
};

// What is wrong; empty if nothing is.
using Trouble = std::string;

// The result of a call with its text.
struct Heard {
  setoResult_t code = setoSuccess;
  std::string text;

  [[nodiscard]] bool well() const { return code == setoSuccess; }
  [[nodiscard]] bool names(int rank) const;
  [[nodiscard]] std::string told() const;
};
Heard heard(setoResult_t code);

}  // namespace seto::soak
