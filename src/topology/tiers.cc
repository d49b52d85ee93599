#include "src/topology/tiers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace seto {
namespace {

// Sizes of all groups if they are equal, else 0.
template <class Map>
int common_size(const Map& groups) {
  const std::size_t size = groups.begin()->second.size();
  const bool equal = std::all_of(groups.begin(), groups.end(), [&](const auto& group) { return group.second.size() == size; });
  return equal ? static_cast<int>(size) : 0;
}

}  // namespace

Tiers Tiers::flat(int ranks) { return of(std::vector<Home>(static_cast<std::size_t>(ranks))); }

Tiers Tiers::of(const std::vector<Home>& homes) {
  Tiers tiers;
  tiers.ranks_ = static_cast<int>(homes.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Rank>> nodes;  // (site, node)
  std::map<std::uint32_t, std::vector<std::uint32_t>> sites;
  for (Rank rank = 0; rank < tiers.ranks_; ++rank) {
    const Home& home = homes[static_cast<std::size_t>(rank)];
    auto& members = nodes[{home.site, home.node}];
    if (members.empty()) sites[home.site].push_back(home.node);
    members.push_back(rank);
  }
  const int in_node = common_size(nodes);
  const int in_site = common_size(sites);
  tiers.uniform_ = in_node > 0 && in_site > 0;
  tiers.by_cell_.resize(homes.size());
  if (!tiers.uniform_) {
    std::iota(tiers.by_cell_.begin(), tiers.by_cell_.end(), 0);
    tiers.sizes_ = {tiers.ranks_};
    tiers.kinds_ = {sites.size() > 1 ? TierKind::world : nodes.size() > 1 ? TierKind::site : TierKind::node};
  } else {
    tiers.by_cell_.clear();
    for (const auto& [key, members] : nodes) tiers.by_cell_.insert(tiers.by_cell_.end(), members.begin(), members.end());
    const std::pair<int, TierKind> all[] = {
        {in_node, TierKind::node}, {in_site, TierKind::site}, {static_cast<int>(sites.size()), TierKind::world}};
    for (const auto& [size, kind] : all) {
      if (size == 1 && tiers.ranks_ > 1) continue;
      if (tiers.ranks_ == 1 && kind != TierKind::node) continue;
      tiers.sizes_.push_back(size);
      tiers.kinds_.push_back(kind);
    }
  }
  tiers.cell_of_.resize(homes.size());
  for (std::uint32_t cell = 0; cell < tiers.by_cell_.size(); ++cell)
    tiers.cell_of_[static_cast<std::size_t>(tiers.by_cell_[cell])] = cell;
  return tiers;
}

int Tiers::coordinate(Rank rank, int tier) const {
  auto cell = static_cast<int>(cell_of_[static_cast<std::size_t>(rank)]);
  for (int t = 0; t < tier; ++t) cell /= size(t);
  return cell % size(tier);
}

std::vector<Rank> Tiers::group(Rank rank, int tier) const {
  const auto cell = static_cast<int>(cell_of_[static_cast<std::size_t>(rank)]);
  int stride = 1;
  for (int t = 0; t < tier; ++t) stride *= size(t);
  const int first = cell - coordinate(rank, tier) * stride;
  std::vector<Rank> members;
  for (int i = 0; i < size(tier); ++i) members.push_back(by_cell_[static_cast<std::size_t>(first + i * stride)]);
  return members;
}

std::vector<Rank> Tiers::column(Rank rank, int tier, int coordinate) const {
  const auto cell = static_cast<int>(cell_of_[static_cast<std::size_t>(rank)]);
  int stride = 1;
  for (int t = 0; t < tier; ++t) stride *= size(t);
  std::vector<Rank> members;
  for (int at = cell % stride + coordinate * stride; at < ranks_; at += stride * size(tier))
    members.push_back(by_cell_[static_cast<std::size_t>(at)]);
  return members;
}

std::uint32_t Tiers::position(Rank rank) const {
  std::uint32_t position = 0;
  for (int tier = 0; tier < count(); ++tier)
    position = position * static_cast<std::uint32_t>(size(tier)) + static_cast<std::uint32_t>(coordinate(rank, tier));
  return position;
}

}  // namespace seto
