#include "src/control/overlay/overlay_graph.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace seto {
namespace {

// Pairs for each two sites: any three of their processes may be lost.
constexpr std::size_t kBridges = 4;

// The members of each site, so that peers are on different hosts as far as possible: first one of each host, then a second.
std::vector<std::vector<OverlayMember>> members_of_sites(const std::vector<OverlayPlace>& places) {
  std::map<std::uint32_t, std::uint32_t> of_host;
  std::map<std::uint32_t, std::vector<std::tuple<std::uint32_t, std::uint32_t, OverlayMember>>> sites;
  for (OverlayMember member = 0; member < places.size(); ++member)
    sites[places[member].site].emplace_back(of_host[places[member].host]++, places[member].host, member);
  std::vector<std::vector<OverlayMember>> result;
  for (auto& [site, members] : sites) {
    std::sort(members.begin(), members.end());
    result.emplace_back();
    for (const auto& [index, host, member] : members) result.back().push_back(member);
  }
  return result;
}

}  // namespace

OverlayGraph::OverlayGraph(std::vector<OverlayPlace> places) : places_(std::move(places)), peers_(places_.size()) {
  const std::vector<std::vector<OverlayMember>> sites = members_of_sites(places_);
  for (std::size_t one = 0; one < sites.size(); ++one) {
    join_site(sites[one]);
    for (std::size_t other = 0; other < one; ++other) join_sites(sites[one], sites[other]);
  }
  sort_peers();
  if (connected()) return;
  // Hosts that state several sites, for example.
  for (OverlayMember one = 0; one < members(); ++one)
    for (OverlayMember other = 0; other < one; ++other) join(one, other);
  sort_peers();
}

void OverlayGraph::join(OverlayMember one, OverlayMember other) {
  if (places_[one].host == places_[other].host) return;
  peers_[one].push_back(other);
  peers_[other].push_back(one);
}

// Where a member at some distance is on the same host, the next one that is not takes its place.
void OverlayGraph::join_site(const std::vector<OverlayMember>& site) {
  for (std::size_t own = 0; own < site.size(); ++own)
    for (std::size_t distance = 1; distance < site.size(); distance *= 2) {
      std::size_t other = (own + distance) % site.size();
      while (other != own && places_[site[other]].host == places_[site[own]].host) other = (other + 1) % site.size();
      if (other != own) join(site[own], site[other]);
    }
}

// Spread over both sites, and with each other site over other members.
void OverlayGraph::join_sites(const std::vector<OverlayMember>& one, const std::vector<OverlayMember>& other) {
  const std::size_t bridges = std::min(kBridges, std::max(one.size(), other.size()));
  const auto member = [&](const std::vector<OverlayMember>& site, std::size_t number, std::uint32_t towards) {
    return site[(number * std::max<std::size_t>(1, site.size() / bridges) + std::size_t{towards} * kBridges) % site.size()];
  };
  for (std::size_t number = 0; number < bridges; ++number)
    join(member(one, number, places_[other.front()].site), member(other, number, places_[one.front()].site));
}

void OverlayGraph::sort_peers() {
  for (std::vector<OverlayMember>& each : peers_) {
    std::sort(each.begin(), each.end());
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
}

bool OverlayGraph::adjacent(OverlayMember one, OverlayMember other) const {
  return std::binary_search(peers_[one].begin(), peers_[one].end(), other);
}

// Every two members of different hosts are. Members of one host may have no other way to each other than their shared memory.
bool OverlayGraph::connected() const {
  std::vector<bool> seen(places_.size());
  std::vector<OverlayMember> reached;
  if (!places_.empty()) reached.push_back(0), seen[0] = true;
  for (std::size_t next = 0; next < reached.size(); ++next)
    for (const OverlayMember one : peers_[reached[next]])
      if (!seen[one]) reached.push_back(one), seen[one] = true;
  return reached.size() == places_.size();
}

}  // namespace seto
