#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/topology/tiers.h"

namespace seto::support {

// Ranks on nodes, and nodes on sites, of random sizes. Some are numbered node by node, others across nodes.
inline std::vector<Home> random_homes(int ranks, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t end) { return static_cast<std::uint32_t>(random() % end); };
  const std::uint32_t nodes = 1 + below(static_cast<std::uint64_t>(ranks));
  const std::uint32_t sites = 1 + below(std::min<std::uint64_t>(nodes, 5));
  std::vector<std::uint32_t> site_of(nodes);
  for (std::uint32_t& site : site_of) site = below(sites);
  std::vector<Home> homes;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint32_t node = below(nodes);
    homes.push_back({node, site_of[node]});
  }
  if (random() % 2 == 0) std::sort(homes.begin(), homes.end(), [](Home a, Home b) { return a.node < b.node; });
  return homes;
}

// Some sites state rates that differ up to 16 times, others none.
inline Tiers with_random_rates(Tiers tiers, std::mt19937_64& random) {
  std::vector<PortRates> rates;
  if (random() % 4 == 0) return tiers;
  for (int i = 0; i < tiers.size(tiers.count() - 1); ++i)
    rates.push_back({static_cast<double>(1 + random() % 16), static_cast<double>(1 + random() % 16)});
  tiers.take_rates(std::move(rates));
  return tiers;
}

// The algorithms whose plans follow the tiers.
inline bool follows_tiers(std::string_view algorithm) {
  return algorithm == "hierarchical" || algorithm == "host_ring" || algorithm == "spread";
}

// The ranks of each node, site by site: "3 1 | 4".
inline std::string text_of(const std::vector<Home>& homes) {
  std::vector<Home> sorted = homes;
  std::sort(sorted.begin(), sorted.end(), [](Home a, Home b) { return a.site != b.site ? a.site < b.site : a.node < b.node; });
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    if (i > 0) text += sorted[i].site == sorted[i - 1].site ? " " : " | ";
    text += std::to_string(end - i);
    i = end;
  }
  return text;
}

}  // namespace seto::support
