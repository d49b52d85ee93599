#include "src/control/overlay/overlay_routes.h"

#include <algorithm>

namespace seto {

OverlayRoutes::OverlayRoutes(OverlayGraph graph, OverlayMember own)
    : graph_(std::move(graph)), own_(own), given_up_(graph_.members()) {}

bool OverlayRoutes::edge_lost(OverlayMember teller, OverlayMember lost) {
  if (!lost_edges_.emplace(teller, lost).second) return false;
  if (left_.count(lost) > 0) return member_gone(lost);
  update_given_up(lost);
  ++changes_of_lost_;
  trees_.clear();
  return true;
}

bool OverlayRoutes::member_left(OverlayMember member) {
  if (!left_.insert(member).second) return false;
  trees_.clear();
  for (const OverlayMember one : graph_.peers(member))
    if (lost_edges_.count({one, member}) > 0) static_cast<void>(member_gone(member));
  return true;
}

// The verdict about its peers no longer waits for it.
bool OverlayRoutes::member_gone(OverlayMember member) {
  if (!gone_.insert(member).second) return false;
  for (const OverlayMember one : graph_.peers(member)) update_given_up(one);
  trees_.clear();
  return true;
}

bool OverlayRoutes::edge_holds(OverlayMember one, OverlayMember other) const {
  return lost_edges_.count({one, other}) == 0 && lost_edges_.count({other, one}) == 0;
}

bool OverlayRoutes::edge_counts(OverlayMember one, OverlayMember other) const {
  const auto gives_up = [&](OverlayMember teller, OverlayMember lost) {
    return lost_edges_.count({teller, lost}) > 0 && left_.count(lost) == 0;
  };
  return !gives_up(one, other) && !gives_up(other, one);
}

void OverlayRoutes::update_given_up(OverlayMember member) {
  bool told = false;
  for (const OverlayMember one : graph_.peers(member)) {
    if (!graph_.same_site(one, member)) continue;
    const bool gives_up = lost_edges_.count({one, member}) > 0;
    if (!gives_up && gone_.count(one) == 0) return;
    told = told || gives_up;
  }
  if (told && !given_up_[member]) ++changes_of_lost_;
  given_up_[member] = told;
}

bool OverlayRoutes::usable(OverlayMember one, OverlayMember other) const {
  return graph_.adjacent(one, other) && edge_holds(one, other) && gone_.count(one) == 0 && gone_.count(other) == 0 &&
         !given_up_[one] && !given_up_[other];
}

bool OverlayRoutes::usable(const OverlayPath& path, OverlayMember to) const {
  OverlayMember at = own_;
  for (const OverlayMember next : path) {
    if (!usable(at, next)) return false;
    at = next;
  }
  return usable(at, to);
}

OverlayRoutes::Tree OverlayRoutes::tree(std::optional<std::uint32_t> site) const {
  Tree before(graph_.members(), kNobody);
  std::vector<OverlayMember> reached{own_};
  before[own_] = own_;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const OverlayMember at = reached[next];
    for (const OverlayMember one : graph_.peers(at)) {
      const bool inside = !site || graph_.same_site(one, own_) || graph_.place(one).site == *site;
      if (before[one] != kNobody || !inside || !usable(at, one)) continue;
      before[one] = at;
      reached.push_back(one);
    }
  }
  return before;
}

std::optional<OverlayPath> OverlayRoutes::path_in(const Tree& tree, OverlayMember to) const {
  if (tree[to] == kNobody) return std::nullopt;
  OverlayPath path;
  for (OverlayMember at = tree[to]; at != own_; at = tree[at]) path.push_back(at);
  if (path.size() > kLongestPath) return std::nullopt;
  std::reverse(path.begin(), path.end());
  return path;
}

std::optional<OverlayPath> OverlayRoutes::path_to(OverlayMember to) {
  std::optional<OverlayPath> path;
  for (const std::optional<std::uint32_t> site : {std::optional(graph_.place(to).site), std::optional<std::uint32_t>()}) {
    auto known = trees_.find(site);
    if (known == trees_.end()) known = trees_.emplace(site, tree(site)).first;
    path = path_in(known->second, to);
    if (path) break;
  }
  return path;
}

std::vector<bool> OverlayRoutes::lost_members() const {
  std::vector<bool> lost(graph_.members(), true);
  lost[own_] = false;
  if (given_up_[own_]) return lost;
  std::vector<OverlayMember> reached{own_};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const OverlayMember at = reached[next];
    for (const OverlayMember one : graph_.peers(at)) {
      if (!lost[one] || !edge_counts(at, one) || (given_up_[one] && left_.count(one) == 0)) continue;
      lost[one] = false;
      reached.push_back(one);
    }
  }
  for (const OverlayMember one : graph_.peers(own_)) lost[one] = lost[one] || !edge_counts(own_, one);
  return lost;
}

}  // namespace seto
