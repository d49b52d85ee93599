#include "src/core/choice/peer_budget.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace seto {
namespace {

constexpr int kMostHostsWithoutBudget = kMostPeers + 1;

int hosts_of(const Tiers& tiers) { return tiers.kind(0) == TierKind::node ? tiers.blocks(0) : tiers.ranks(); }

bool keeps_budget(const Candidate& candidate) { return candidate.peers <= kMostPeers; }

}  // namespace

void obey_peer_budget(std::vector<Candidate>& candidates, const Tiers& tiers, std::string_view pin) {
  const bool has_budget = hosts_of(tiers) > kMostHostsWithoutBudget;
  const bool can_be_kept = std::any_of(candidates.begin(), candidates.end(),
                                       [](const Candidate& one) { return one.refused.empty() && keeps_budget(one); });
  for (Candidate& candidate : candidates) {
    if (!candidate.refused.empty() || candidate.algorithm->name == pin) continue;
    if (!has_budget && candidate.saves_peers) {
      candidate.refused = "it has few peers, for jobs of more than " + std::to_string(kMostHostsWithoutBudget) + " hosts";
    } else if (has_budget && can_be_kept && !keeps_budget(candidate)) {
      candidate.refused = "needs " + std::to_string(std::llround(candidate.peers)) + " peers on other hosts, more than " +
                          std::to_string(kMostPeers);
    }
    candidate.left_out = !candidate.refused.empty();
  }
}

}  // namespace seto
