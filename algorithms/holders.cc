#include "algorithms/holders.h"

#include <algorithm>

#include "algorithms/shares.h"

namespace seto {
namespace {

bool is_rooted(Collective collective) { return collective == Collective::broadcast || collective == Collective::reduce; }

}  // namespace

Holders::Holders(const Shape& shape, const Tiers& tiers) : shape_(shape), tiers_(tiers) {
  const std::uint32_t each = is_rooted(shape.collective) ? 1 : shape.pieces;
  chunks_of_member_.assign(static_cast<std::size_t>(tiers.size(tiers.count() - 1)), each);
  if (shape.collective == Collective::all_reduce) {
    chunks_of_member_ = chunks_of_sums(tiers);
    order_chunks();
  }
  count_chunks();
}

Holders::Holders(const Shape& shape, const Tiers& tiers, std::vector<std::uint32_t> chunks_of_member)
    : shape_(shape), tiers_(tiers), chunks_of_member_(std::move(chunks_of_member)) {
  order_chunks();
}

std::uint32_t Holders::chunks_of(Rank rank) const { return chunks_of_member_[static_cast<std::size_t>(tiers_.member_of(rank))]; }

void Holders::count_chunks() {
  std::uint64_t before = 0;
  for (const Rank rank : tiers_.block(tiers_.count() - 1, 0)) {
    before_.push_back(before);
    before += chunks_of(rank);
  }
  before_.push_back(before);
}

// In the order of the owners' positions, and where sizes differ as group_by_holders has it.
void Holders::order_chunks() {
  count_chunks();
  for (const Rank owner : tiers_.block(tiers_.count() - 1, 0))
    for (std::uint32_t i = 0; i < chunks_of(owner); ++i) order_.emplace_back(owner, i);
  if (!tiers_.uniform()) group_by_holders();
}

// Numbers the chunks so that those with the same holders lie side by side, and among these the ones of the same owner. That makes
// fewer messages. Chunks of uniform tiers are in this order by the positions of their owners.
void Holders::group_by_holders() {
  const int widest = tiers_.count() - 1;
  using Key = std::pair<std::vector<int>, std::pair<Rank, std::uint32_t>>;  // places of the holders in their members, and owner
  std::vector<Key> keys;
  for (std::uint32_t chunk = 0; chunk < order_.size(); ++chunk) {
    keys.push_back({{}, order_[chunk]});
    for (const Rank head : tiers_.members(widest, 0))
      keys.back().first.push_back(tiers_.position(holder(head, widest - 1, chunk), widest - 1));
  }
  std::sort(keys.begin(), keys.end());
  for (std::uint32_t chunk = 0; chunk < order_.size(); ++chunk) order_[chunk] = keys[chunk].second;
}

Holders::Spot Holders::spot_of(std::uint32_t chunk) const {
  if (order_.empty() && is_rooted(shape_.collective)) return {shape_.root, 1, 2};
  const std::uint32_t each = chunks_of_member_[0];  // alike, unless there is an order
  const auto [rank, index] = order_.empty() ? std::pair(static_cast<Rank>(chunk / each), chunk % each) : order_[chunk];
  return {rank, 2 * std::uint64_t{index} + 1, 2 * std::uint64_t{chunks_of(rank)}};
}

// The spot in this block whose place is most similar to that of `spot` among the ranks outside it, within the block around both.
Holders::Spot Holders::moved(const Spot& spot, int tier, int block) const {
  const std::span<const Rank> inside = tiers_.block(tier, block);
  const int around = tiers_.block_of(spot.rank, tier + 1);
  const auto position = [&](Rank rank) { return tiers_.position(rank, tier + 1); };
  const auto next = std::lower_bound(inside.begin(), inside.end(), position(spot.rank),
                                     [&](Rank rank, int other) { return position(rank) < other; });
  const auto before = static_cast<std::size_t>(next - inside.begin());
  const auto at = static_cast<std::size_t>(position(spot.rank));
  std::uint64_t outside = spot.whole * (at - before);
  std::uint64_t all = spot.whole * (tiers_.block(tier + 1, around).size() - inside.size());
  if (tier + 2 == tiers_.count()) {  // members may own different shares; `spot` is an owner, and counts halves of chunks
    const std::uint64_t own = chunks_of(inside.front());
    outside = 2 * (before_[at] - before * own);
    all = 2 * (before_.back() - inside.size() * own);
  }
  const std::uint64_t place = (outside + spot.before) * inside.size();  // in parts of a rank of this block
  return {inside[place / all], place % all, all};
}

Rank Holders::holder(Rank rank, int tier, std::uint32_t chunk) const {
  if (tier < 0) return rank;
  Spot spot = spot_of(chunk);
  for (int at = tiers_.count() - 2; at >= tier; --at) {
    const int block = tiers_.block_of(rank, at);
    if (tiers_.block_of(spot.rank, at) != block) spot = moved(spot, at, block);
  }
  return spot.rank;
}

// The ranks of the largest block have the smallest share.
std::uint32_t Holders::pieces_for(const Tiers& tiers) {
  if (tiers.uniform()) return 1;
  int largest = 1;
  for (const Neighbourhood& around : tiers.neighbourhoods()) largest = std::max(largest, around.member(tiers.count() - 1));
  return static_cast<std::uint32_t>((kUnevenness * largest + tiers.ranks() - 1) / tiers.ranks());
}

std::vector<std::uint32_t> Holders::chunks_of_sums(const Tiers& tiers) {
  const std::uint32_t each = pieces_for(tiers);
  if (tiers.rates().size() > 2) return chunks_of_shares(shares_of_sums(tiers.rates()), tiers, each);
  return std::vector<std::uint32_t>(static_cast<std::size_t>(tiers.size(tiers.count() - 1)), each);
}

std::uint32_t Holders::total(const Tiers& tiers, const std::vector<std::uint32_t>& chunks_of_member) {
  std::uint32_t all = 0;
  for (std::size_t member = 0; member < chunks_of_member.size(); ++member)
    all += chunks_of_member[member] * static_cast<std::uint32_t>(tiers.ranks_of_member(member));
  return all;
}

}  // namespace seto
