#include "src/bootstrap/bootstrap.h"

#include <algorithm>

namespace seto {

std::string rank_list(const std::vector<Rank>& ranks) {
  constexpr std::size_t kNamed = 8;
  const std::size_t named = std::min(ranks.size(), kNamed);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t index = 0; index < named; ++index) {
    if (index > 0) text += index + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[index]);
  }
  if (ranks.size() > named) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
}

Status missing_ranks(const std::vector<Rank>& missing, int size) {
  return failure(
      Code::timeout,
      "%s of %d did not come before the deadline of the init (SETO_INIT_TIMEOUT_MS); see whether they were started and "
      "what they wrote",
      rank_list(missing).c_str(), size);
}

}  // namespace seto
