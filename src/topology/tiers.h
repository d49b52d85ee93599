#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

// The node and site of a rank, as the rank stated them or as they were detected.
struct Home {
  std::uint32_t node = 0;
  std::uint32_t site = 0;

  friend bool operator==(const Home&, const Home&) = default;
};

// The kind of a tier: the resource that the members of its groups share. Ranks share a node, nodes share a site, sites share the
// world.
enum class TierKind : std::uint8_t { node, site, world };
inline constexpr std::size_t kMostTiers = 3;

// The bytes per second at which a site sends to all other sites and receives from them. Its ranks share both.
struct PortRates {
  double up = 0;
  double down = 0;

  [[nodiscard]] double slower() const { return up < down ? up : down; }
  friend bool operator==(const PortRates&, const PortRates&) = default;
};

// The sizes that a rank finds around it: of its block on each tier, and of the group of members into which that block falls.
struct Neighbourhood {
  std::array<int, kMostTiers> block{};
  std::array<int, kMostTiers> members{};

  // The size of the member that the rank belongs to: a rank on the innermost tier, else the block of the tier before.
  [[nodiscard]] int member(int tier) const { return tier == 0 ? 1 : block[static_cast<std::size_t>(tier) - 1]; }
  friend bool operator==(const Neighbourhood&, const Neighbourhood&) = default;
};

// node < site < world, as a tree of blocks. A *block* of a tier is the set of ranks that share its resource: one block for each
// node, for each site, and one for all ranks. Its *members* are the blocks of the tier before, or ranks on the innermost tier.
// Blocks of a tier may differ in size. Only tiers on which some block has more than one member are kept.
class Tiers {
 public:
  // One tier that holds every rank.
  static Tiers flat(int ranks);
  static Tiers of(const std::vector<Home>& homes);

  [[nodiscard]] int ranks() const { return static_cast<int>(neighbourhood_of_.size()); }
  [[nodiscard]] int count() const { return static_cast<int>(tiers_.size()); }
  // True if all blocks of each tier have the same number of members.
  [[nodiscard]] bool uniform() const { return neighbourhoods_.size() == 1; }
  // The number of members of the largest block of this tier; 0 is the innermost tier.
  [[nodiscard]] int size(int tier) const { return at(tier).most_members; }
  [[nodiscard]] TierKind kind(int tier) const { return at(tier).kind; }
  // The kind of the outermost tier, which a message may have to cross.
  [[nodiscard]] TierKind widest() const { return tiers_.back().kind; }
  // The tier that a message between two ranks crosses: the innermost one on which they share a block.
  [[nodiscard]] int between(Rank a, Rank b) const;
  // Two ranks whose messages cross this tier.
  [[nodiscard]] std::pair<Rank, Rank> ends(int tier) const;

  [[nodiscard]] int blocks(int tier) const { return static_cast<int>(at(tier).blocks.size()); }
  [[nodiscard]] int block_of(Rank rank, int tier) const { return at(tier).block_of[static_cast<std::size_t>(rank)]; }
  // The ranks of a block in order of their positions: the members of the block take turns, each as often as it has ranks. Ranks
  // that have similar places in blocks of equal size thus lie side by side.
  [[nodiscard]] std::span<const Rank> block(int tier, int index) const {
    return at(tier).blocks[static_cast<std::size_t>(index)].ranks;
  }
  // The member of the outermost tier to which a rank belongs.
  [[nodiscard]] int member_of(Rank rank) const { return count() == 1 ? position(rank, 0) : block_of(rank, count() - 2); }
  // The ranks of the largest node, or of the largest site.
  [[nodiscard]] int most_sharing(TierKind kind) const;
  // The number of ranks of a member of the outermost tier.
  [[nodiscard]] int ranks_of_member(std::size_t member) const {
    return count() == 1 ? 1 : static_cast<int>(block(count() - 2, static_cast<int>(member)).size());
  }
  // Ranks of that member whose next rank, in a ring of all ranks by number, belongs to another member.
  [[nodiscard]] int exits_of_member(std::size_t member) const { return exits_[member]; }
  // One rank of each member of a block, in the order of the members.
  [[nodiscard]] std::span<const Rank> members(int tier, int index) const {
    return at(tier).blocks[static_cast<std::size_t>(index)].heads;
  }
  // True if the ranks of each block of this tier are numbered one after another.
  [[nodiscard]] bool consecutive(int tier) const { return at(tier).consecutive; }
  // The index of a rank in its block.
  [[nodiscard]] int position(Rank rank, int tier) const { return at(tier).position_of[static_cast<std::size_t>(rank)]; }

  // The rates of the members of the outermost tier, in their order; empty unless all are known.
  [[nodiscard]] std::span<const PortRates> rates() const { return rates_; }
  [[nodiscard]] double slowest_rate() const;  // 0: unknown
  // Takes the rates of sites; nothing, if sites are not the members of the outermost tier or a rate is unknown (0).
  void take_rates(std::vector<PortRates> rates);
  // The members of the outermost tier in the order in which rings of sites pass them. Their own order, unless another was taken.
  [[nodiscard]] std::span<const int> ring() const { return ring_; }
  // Takes the order of a ring; their own order, if this one does not contain each member once.
  void take_ring(std::vector<int> members);
  // A checksum of the rates and the ring, on which all ranks must agree.
  [[nodiscard]] std::uint32_t digest() const;

  // The neighbourhoods of all ranks, each combination once. Uniform tiers have one.
  [[nodiscard]] std::span<const Neighbourhood> neighbourhoods() const { return neighbourhoods_; }
  [[nodiscard]] const Neighbourhood& neighbourhood_of(Rank rank) const {
    return neighbourhoods_[static_cast<std::size_t>(neighbourhood_of_[static_cast<std::size_t>(rank)])];
  }

 private:
  struct Block {
    std::vector<Rank> ranks;
    std::vector<Rank> heads;
  };
  struct Tier {
    TierKind kind = TierKind::node;
    int most_members = 0;
    bool consecutive = true;
    std::vector<Block> blocks;
    std::vector<int> block_of;     // by rank
    std::vector<int> position_of;  // by rank
  };
  [[nodiscard]] const Tier& at(int tier) const { return tiers_[static_cast<std::size_t>(tier)]; }
  void add_tier(TierKind kind, const std::vector<std::vector<Rank>>& joined);
  void note_neighbourhoods(int ranks);
  void note_exits(int ranks);

  std::vector<Tier> tiers_;  // innermost first
  std::vector<int> exits_;   // by member of the outermost tier
  std::vector<Neighbourhood> neighbourhoods_;
  std::vector<int> neighbourhood_of_;  // by rank
  std::vector<PortRates> rates_;
  std::vector<int> ring_;  // members of the outermost tier
};

// Tiers for reports and tests, not discovered: ranks spread evenly over nodes, and nodes evenly over sites.
inline constexpr int kMostMadeUpRanks = 65'536;
Result<Tiers> made_up_tiers(int ranks, int nodes, int sites);

}  // namespace seto
