#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/holders.h"
#include "src/plan/builder.h"

namespace seto {

// Ranks that hold the same chunks for the members of a block: one of each member, in the order of the members.
struct Team {
  std::vector<Rank> ranks;
  Parts parts;                // by member: what its rank holds for the whole block
  std::vector<Range> ranges;  // all of them

  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] const std::vector<Range>& part(int member) const { return parts[static_cast<std::size_t>(member)]; }
};

// How the hosts of a site exchange what a node holds: each rank of a team with all others of it, or with the two next to it in a
// ring, in as many rounds as there are others.
enum class HostPhases : std::uint8_t { direct, ring };

// True if the phases of this tier go round a ring.
inline bool goes_round(const Tiers& tiers, int tier, HostPhases phases) {
  return phases == HostPhases::ring && tiers.kind(tier) == TierKind::site;
}

// The statements of a hierarchical plan that concern the built rank.
class Hierarchy {
 public:
  Hierarchy(Builder& builder, const Tiers& tiers, Holders holders, HostPhases phases = HostPhases::direct);

  // From the innermost tier to the outermost before `end`: each holder of a block sums the parts that the members hold.
  void scatter_sums(int end) const;
  // From the outermost tier below `from` to the innermost: each holder of a block passes its chunks on to the members, but not to
  // `except`, which has them. Round a ring there is no `except`.
  void gather_back(int from, Rank except = -1) const;
  // On the outermost tier of two members: their holders exchange what they have, so that both have the sum.
  void exchange_sums() const;
  // The ranges that the built rank owns.
  [[nodiscard]] std::vector<Range> owned() const;

  // The teams of the built rank among the members of its block, in the order of their first chunks.
  [[nodiscard]] const std::vector<Team>& teams(int tier) const { return teams_[static_cast<std::size_t>(tier)]; }
  // A member's rank passes a range on to the others of its team, but not to `except`.
  void hand_on(const Team& team, int tier, int member, Range range, Rank except = -1) const;
  [[nodiscard]] const Holders& holders() const { return holders_; }

 private:
  void add_tier(int tier, std::vector<std::uint32_t>& held);
  // Calls phase(builder, group, parts) for each team of a tier whose phases go round a ring. All begin in the same round.
  template <class Phase>
  void round_the_hosts(int tier, Phase phase) const;

  // Blocks of one size have one team for each rank, which is a multicast group. On the innermost tier it is the block.
  [[nodiscard]] bool has_one_team(int tier) const { return tier == 0 || tiers_.uniform(); }
  [[nodiscard]] Group group_of(std::vector<Rank> ranks, int tier) const {
    return {std::move(ranks), static_cast<std::uint8_t>(tier + 1), builder_.rank()};
  }

  Builder& builder_;
  const Tiers& tiers_;
  Holders holders_;
  HostPhases phases_;
  std::vector<std::vector<Team>> teams_;  // by tier
};

// Adds a chunk to ranges, which become one where chunks lie side by side.
inline void append(std::vector<Range>& ranges, std::uint32_t chunk) {
  if (!ranges.empty() && ranges.back().first + ranges.back().count == chunk) {
    ++ranges.back().count;
  } else {
    ranges.push_back({chunk, 1});
  }
}

}  // namespace seto
