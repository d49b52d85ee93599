#pragma once

#include <vector>

#include "src/core/communicator/communicator.h"

namespace seto {

// Ranks with this color join no part.
inline constexpr int kNoColor = -1;

struct SplitChoice {
  int color = 0;
  int key = 0;
};

// A collective of the communicator. Returns the ranks with this rank's color, sorted by key and then by rank; empty for kNoColor.
// A rank that rejects its own call passes a failed `verdict`, and then all ranks fail.
Result<std::vector<Rank>> agree_on_parts(Communicator& communicator, const SplitChoice& mine, const Status& verdict);

}  // namespace seto
