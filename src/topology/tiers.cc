#include "src/topology/tiers.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

namespace seto {
namespace {

// The ranks of several blocks in one order: by the middle of the part of its block that a rank stands for, then by block.
std::vector<Rank> taking_turns(const std::vector<std::span<const Rank>>& blocks) {
  struct Turn {
    std::uint64_t twice_middle;  // of the rank's part, in parts
    std::uint64_t parts;
    Rank rank;
  };
  std::vector<Turn> turns;
  for (const std::span<const Rank> block : blocks)
    for (std::size_t i = 0; i < block.size(); ++i) turns.push_back({2 * i + 1, block.size(), block[i]});
  std::stable_sort(turns.begin(), turns.end(),
                   [](const Turn& a, const Turn& b) { return a.twice_middle * b.parts < b.twice_middle * a.parts; });
  std::vector<Rank> ranks;
  for (const Turn& turn : turns) ranks.push_back(turn.rank);
  return ranks;
}

}  // namespace

Tiers Tiers::flat(int ranks) { return of(std::vector<Home>(static_cast<std::size_t>(ranks))); }

Tiers Tiers::of(const std::vector<Home>& homes) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Rank>> by_node;  // (site, node)
  for (std::size_t rank = 0; rank < homes.size(); ++rank)
    by_node[{homes[rank].site, homes[rank].node}].push_back(static_cast<Rank>(rank));
  std::vector<std::vector<Rank>> nodes;
  std::vector<std::vector<Rank>> sites;
  std::vector<std::vector<Rank>> world(1);
  const std::uint32_t* site = nullptr;
  for (const auto& [key, ranks] : by_node) {
    if (site == nullptr || *site != key.first) sites.emplace_back();
    site = &key.first;
    nodes.push_back(ranks);
    sites.back().insert(sites.back().end(), ranks.begin(), ranks.end());
    world[0].insert(world[0].end(), ranks.begin(), ranks.end());
  }
  Tiers tiers;
  if (homes.size() == 1 || nodes.size() < homes.size()) tiers.add_tier(TierKind::node, nodes);
  if (sites.size() < nodes.size()) tiers.add_tier(TierKind::site, sites);
  if (sites.size() > 1) tiers.add_tier(TierKind::world, world);
  tiers.note_neighbourhoods(static_cast<int>(homes.size()));
  tiers.note_exits(static_cast<int>(homes.size()));
  tiers.ring_.resize(static_cast<std::size_t>(tiers.size(tiers.count() - 1)));
  std::iota(tiers.ring_.begin(), tiers.ring_.end(), 0);
  return tiers;
}

// `joined` holds the ranks of each block. Each is a union of blocks of the tier before.
void Tiers::add_tier(TierKind kind, const std::vector<std::vector<Rank>>& joined) {
  Tier tier;
  tier.kind = kind;
  std::size_t ranks = 0;
  for (const std::vector<Rank>& all : joined) ranks += all.size();
  tier.block_of.resize(ranks);
  tier.position_of.resize(ranks);
  for (const std::vector<Rank>& all : joined) {
    Block block;
    std::vector<std::span<const Rank>> parts;
    if (tiers_.empty()) {
      block.heads = block.ranks = all;
    } else {
      std::vector<int> inner;
      for (const Rank rank : all) inner.push_back(tiers_.back().block_of[static_cast<std::size_t>(rank)]);
      std::sort(inner.begin(), inner.end());
      inner.erase(std::unique(inner.begin(), inner.end()), inner.end());
      for (const int index : inner) {
        parts.emplace_back(tiers_.back().blocks[static_cast<std::size_t>(index)].ranks);
        block.heads.push_back(parts.back().front());
      }
      block.ranks = taking_turns(parts);
    }
    tier.most_members = std::max(tier.most_members, static_cast<int>(block.heads.size()));
    const auto [first, last] = std::minmax_element(all.begin(), all.end());
    tier.consecutive = tier.consecutive && static_cast<std::size_t>(*last - *first) + 1 == all.size();
    for (std::size_t i = 0; i < block.ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(block.ranks[i]);
      tier.block_of[rank] = static_cast<int>(tier.blocks.size());
      tier.position_of[rank] = static_cast<int>(i);
    }
    tier.blocks.push_back(std::move(block));
  }
  tiers_.push_back(std::move(tier));
}

void Tiers::note_neighbourhoods(int ranks) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    Neighbourhood around;
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      const Block& own = tiers_[tier].blocks[static_cast<std::size_t>(block_of(rank, static_cast<int>(tier)))];
      around.block[tier] = static_cast<int>(own.ranks.size());
      around.members[tier] = static_cast<int>(own.heads.size());
    }
    auto known = std::find(neighbourhoods_.begin(), neighbourhoods_.end(), around);
    if (known == neighbourhoods_.end()) known = neighbourhoods_.insert(neighbourhoods_.end(), around);
    neighbourhood_of_.push_back(static_cast<int>(known - neighbourhoods_.begin()));
  }
}

void Tiers::note_exits(int ranks) {
  exits_.assign(tiers_.back().blocks[0].heads.size(), 0);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const int member = member_of(rank);
    if (member_of((rank + 1) % ranks) != member) ++exits_[static_cast<std::size_t>(member)];
  }
}

void Tiers::take_rates(std::vector<PortRates> rates) {
  rates_.clear();
  const bool are_known = std::all_of(rates.begin(), rates.end(), [](const PortRates& one) { return one.slower() > 0; });
  if (widest() == TierKind::world && are_known && rates.size() == tiers_.back().blocks[0].heads.size()) rates_ = std::move(rates);
}

void Tiers::take_ring(std::vector<int> members) {
  std::sort(ring_.begin(), ring_.end());
  if (std::is_permutation(ring_.begin(), ring_.end(), members.begin(), members.end())) ring_ = std::move(members);
}

double Tiers::slowest_rate() const {
  double slowest = 0;
  for (const PortRates& one : rates_) slowest = slowest == 0 ? one.slower() : std::min(slowest, one.slower());
  return slowest;
}

int Tiers::most_sharing(TierKind kind) const {
  int tier = count() - 1;
  while (tier >= 0 && this->kind(tier) > kind) --tier;
  int most = 1;
  for (int block = 0; tier >= 0 && block < blocks(tier); ++block)
    most = std::max(most, static_cast<int>(this->block(tier, block).size()));
  return most;
}

std::uint32_t Tiers::digest() const {
  std::uint32_t digest = 2166136261U;
  for (const PortRates& rates : rates_)
    for (const double rate : {rates.up, rates.down})
      for (auto word = std::bit_cast<std::uint64_t>(rate); word != 0; word >>= 8)
        digest = (digest ^ static_cast<std::uint32_t>(word & 0xff)) * 16777619U;
  for (const int member : ring_) digest = (digest ^ static_cast<std::uint32_t>(member)) * 16777619U;
  return digest;
}

int Tiers::between(Rank a, Rank b) const {
  int tier = 0;
  while (block_of(a, tier) != block_of(b, tier)) ++tier;
  return tier;
}

std::pair<Rank, Rank> Tiers::ends(int tier) const {
  const auto& all = at(tier).blocks;
  const auto block = std::find_if(all.begin(), all.end(), [](const Block& one) { return one.heads.size() > 1; });
  return {block->heads[0], block->heads[1]};
}

Result<Tiers> made_up_tiers(int ranks, int nodes, int sites) {
  if (ranks < 1 || ranks > kMostMadeUpRanks)
    return failure(Code::invalid_argument, "ranks: %d is not one of 1 to %d", ranks, kMostMadeUpRanks);
  if (nodes < 1 || nodes > ranks || ranks % nodes != 0)
    return failure(Code::invalid_argument, "nodes: %d ranks cannot be spread evenly over %d nodes", ranks, nodes);
  if (sites < 1 || sites > nodes || nodes % sites != 0)
    return failure(Code::invalid_argument, "sites: %d nodes cannot be spread evenly over %d sites", nodes, sites);
  std::vector<Home> homes;
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / (ranks / nodes);
    homes.push_back({static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(node / (nodes / sites))});
  }
  return Tiers::of(homes);
}

}  // namespace seto
