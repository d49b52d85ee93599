#pragma once

#include <cstdint>
#include <string>

#include "tests/soak/board.h"
#include "tests/soak/plan.h"

namespace seto::soak {

// What the parent says to a process, and hears from it.
enum class Order : std::uint8_t { play, account, end };
struct Command {
  Order order;
  std::uint64_t generation;
};
struct Report {
  bool well;
  bool judged;  // of an account: it has lived long enough to be compared with its own beginning
};

// What all processes of a run have in common.
struct Setting {
  Shape shape;
  Board& board;
  std::string directory;
};

// Obeys what comes over `commands` and reports to `reports`; ends with the process, and never returns.
[[noreturn]] void work(const Setting& setting, int process, int commands, int reports);

}  // namespace seto::soak
