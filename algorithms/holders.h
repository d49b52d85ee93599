#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"

namespace seto {

// Which rank of a block holds a chunk for the whole block: it collects the block's sum of that chunk, or hands the chunk on
// within the block.
//
// Every chunk has an owner, which holds it for all blocks around the owner. A block without the owner has the holder whose place
// in it is most similar to the owner's place among the other ranks. So the chunks that come from outside are spread evenly over
// the ranks of a block, whatever their numbers are: each border that was crossed adds a few chunks at most to the share of a
// rank. See pieces_for.
class Holders {
 public:
  // The owners are those of the collective: the rank of a part, the root, or for an all_reduce all ranks.
  Holders(const Shape& shape, const Tiers& tiers);
  // Each rank of a member of the outermost tier owns this number of chunks, by member.
  Holders(const Shape& shape, const Tiers& tiers, std::vector<std::uint32_t> chunks_of_member);

  [[nodiscard]] Rank owner(std::uint32_t chunk) const { return spot_of(chunk).rank; }
  // The holder for the block around `rank` on this tier; the outermost one is held by the owner. On tier -1 a block is one rank.
  [[nodiscard]] Rank holder(Rank rank, int tier, std::uint32_t chunk) const;

  // The number of chunks of each rank's part: so many that one chunk is at most 1 / kUnevenness of the share of a rank.
  static std::uint32_t pieces_for(const Tiers& tiers);
  static constexpr int kUnevenness = 8;

  // The chunks of an all_reduce that each rank of a member of the outermost tier owns, by member: alike, unless the rates of
  // the members are known and there are more than two. Two exchange everything, whatever they own.
  static std::vector<std::uint32_t> chunks_of_sums(const Tiers& tiers);
  static std::uint32_t total(const Tiers& tiers, const std::vector<std::uint32_t>& chunks_of_member);

 private:
  // A rank, and the fraction of its part that lies before the middle of a chunk, in halves of a chunk where the rank owns the
  // chunk. Fractions are exact: all ranks must agree.
  struct Spot {
    Rank rank = 0;
    std::uint64_t before = 0;
    std::uint64_t whole = 1;
  };
  [[nodiscard]] Spot spot_of(std::uint32_t chunk) const;
  void group_by_holders();
  void order_chunks();
  void count_chunks();
  [[nodiscard]] std::uint32_t chunks_of(Rank rank) const;
  [[nodiscard]] Spot moved(const Spot& spot, int tier, int block) const;

  const Shape& shape_;
  const Tiers& tiers_;
  std::vector<std::uint32_t> chunks_of_member_;  // of each rank of a member of the outermost tier
  std::vector<std::uint64_t> before_;            // chunks of ranks at lower positions of the outermost tier, by position
  std::vector<std::pair<Rank, std::uint32_t>>
      order_;  // (owner, index among its chunks), by chunk; empty: the chunks of a rank lie side by side
};

}  // namespace seto
