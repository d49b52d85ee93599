#pragma once

#include <cstdint>
#include <vector>

#include "src/base/types.h"

namespace seto {

// Where a rank lives, as it says of itself or as it was found out.
struct Home {
  std::uint32_t node = 0;
  std::uint32_t site = 0;

  friend bool operator==(const Home&, const Home&) = default;
};

// What the members of a group have in common: they share a node, nodes share a site, sites share the world.
enum class TierKind : std::uint8_t { node, site, world };

// node < site < world, as coordinates: every rank has an index within its node, its node an index within its site, its site an
// index in the world. Only tiers that hold more than one member are kept.
class Tiers {
 public:
  // One tier that holds every rank.
  static Tiers flat(int ranks);
  static Tiers of(const std::vector<Home>& homes);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int count() const { return static_cast<int>(sizes_.size()); }
  // Every node has as many ranks, every site as many nodes. Only then are there coordinates.
  [[nodiscard]] bool uniform() const { return uniform_; }
  // Members of a group of this tier; 0 is the innermost.
  [[nodiscard]] int size(int tier) const { return sizes_[static_cast<std::size_t>(tier)]; }
  [[nodiscard]] TierKind kind(int tier) const { return kinds_[static_cast<std::size_t>(tier)]; }
  // Of the outermost tier: what a message to any rank may have to cross.
  [[nodiscard]] TierKind widest() const { return kinds_.back(); }

  [[nodiscard]] int coordinate(Rank rank, int tier) const;
  // The ranks that differ from `rank` in no other coordinate, in order of this one.
  [[nodiscard]] std::vector<Rank> group(Rank rank, int tier) const;
  // The ranks that agree with `rank` on all coordinates below `tier`, and have `coordinate` at it.
  [[nodiscard]] std::vector<Rank> column(Rank rank, int tier, int coordinate) const;
  // Position when the innermost coordinate is the most significant: columns are contiguous.
  [[nodiscard]] std::uint32_t position(Rank rank) const;

 private:
  int ranks_ = 1;
  bool uniform_ = true;
  std::vector<int> sizes_;              // by tier
  std::vector<TierKind> kinds_;         // by tier
  std::vector<Rank> by_cell_;           // rank at (outermost … innermost) coordinates, innermost fastest
  std::vector<std::uint32_t> cell_of_;  // the inverse
};

}  // namespace seto
