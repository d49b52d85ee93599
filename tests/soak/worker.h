#pragma once

#include <cstdint>
#include <string>

#include "tests/soak/board.h"
#include "tests/soak/plan.h"

namespace seto::soak {

// Orders of the parent to a process, and the process's answers.
enum class Order : std::uint8_t { play, account, end };
struct Command {
  Order order;
  std::uint64_t generation;
};
struct Report {
  bool well;
  bool judged;  // for an account: the process has run long enough to be compared with its start
};

// The common parameters of all processes of a run.
struct Setting {
  Shape shape;
  Board& board;
  std::string directory;
};

// Obeys the orders that arrive on `commands` and answers on `reports`. It ends with the process and never returns.
[[noreturn]] void work(const Setting& setting, int process, int commands, int reports);

}  // namespace seto::soak
