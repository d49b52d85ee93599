#pragma once

#include <vector>

#include "src/core/communicator/communicator.h"

namespace seto {

// Ranks of no color join no part.
inline constexpr int kNoColor = -1;

struct SplitChoice {
  int color = 0;
  int key = 0;
};

// Collective over the communicator: the ranks of this rank's color, by key, then rank. Empty for no color. A rank that has found
// its call wrong says so with a failed `verdict`, so that all fail.
Result<std::vector<Rank>> agree_on_parts(Communicator& communicator, const SplitChoice& mine, const Status& verdict);

}  // namespace seto
