#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/types.h"

// The failure text of calls that differ between two ranks. A rank that detects the mismatch writes it, and `seto report` reads
// it from a dump.
namespace seto {

struct Mismatch {
  std::uint64_t operation = 0;
  Rank rank = 0;  // of calls: the rank that differs from the lowest one; of plans: the lowest one
  Rank peer = 0;

  // "operation 4: rank 1 calls all_reduce of 8 float, sum, but rank 0 calls barrier"
  [[nodiscard]] std::string of_calls(std::string_view rank_calls, std::string_view peer_calls) const;
  // Both ranks make the same call with different plans.
  [[nodiscard]] std::string of_plans(std::string_view call) const;
};

// A recorded mismatch, and what follows "operation 4: " in its text.
struct ReadMismatch {
  Mismatch mismatch;
  std::string_view difference;
};
// Nothing if the text states another failure.
[[nodiscard]] std::optional<ReadMismatch> read_mismatch(std::string_view failure);

}  // namespace seto
