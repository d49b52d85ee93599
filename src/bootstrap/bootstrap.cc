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

Status missing_ranks(const std::vector<Rank>& missing, int size, std::uint64_t waited_ms) {
  return failure(Code::timeout, "%s of %d did not join before the deadline of the init (SETO_INIT_TIMEOUT_MS), in %llu ms; %s",
                 rank_list(missing).c_str(), size, static_cast<unsigned long long>(waited_ms),
                 advice_on_missing(missing.size()).c_str());
}

std::string advice_on_missing(std::size_t ranks) {
  return ranks == 1 ? "check whether it was started, and what it wrote" : "check whether they were started, and what they wrote";
}

}  // namespace seto
