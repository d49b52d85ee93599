#include "src/command/doctor/transfer.h"

#include <algorithm>

namespace seto::command {
namespace {

constexpr std::size_t kMostGrowth = 8;

}  // namespace

// The next transfer gets half the budget: all earlier ones together took less than that.
std::size_t next_transfer(std::size_t bytes, double took_s, double budget_s) {
  const std::size_t most = std::min(bytes * kMostGrowth, kMostTransfer);
  const double fitting = static_cast<double>(bytes) * (budget_s / 2) / std::max(took_s, 1e-9);
  const std::size_t next = fitting < static_cast<double>(most) ? static_cast<std::size_t>(fitting) : most;
  return next < 2 * bytes ? 0 : next;
}

}  // namespace seto::command
