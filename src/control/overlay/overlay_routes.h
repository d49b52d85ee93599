#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "src/control/overlay/overlay_graph.h"

namespace seto {

// The members between two others, in order.
using OverlayPath = std::vector<OverlayMember>;
// A longer path is none.
inline constexpr std::size_t kLongestPath = 12;

// The knowledge of one member of the overlay: the edges that are lost, the members that have left, and what follows from that. A
// member that has left passes messages on until one of its peers tells that the edge to it is lost. Edges and members never come
// back.
class OverlayRoutes final {
 public:
  OverlayRoutes(OverlayGraph graph, OverlayMember own);

  [[nodiscard]] const OverlayGraph& graph() const { return graph_; }
  [[nodiscard]] OverlayMember own() const { return own_; }

  // `teller` has given up its peer `lost`. Returns false if that is known, or tells nothing new of a member that has left.
  bool edge_lost(OverlayMember teller, OverlayMember lost);
  // Returns false if that is known.
  bool member_left(OverlayMember member);
  [[nodiscard]] const std::set<std::pair<OverlayMember, OverlayMember>>& lost_edges() const { return lost_edges_; }
  [[nodiscard]] const std::set<OverlayMember>& left() const { return left_; }

  // The edge between two peers carries messages: it is there, both are in the overlay, and their sites have not given them
  // up.
  [[nodiscard]] bool usable(OverlayMember one, OverlayMember other) const;
  // A path from this member to that one is still one.
  [[nodiscard]] bool usable(const OverlayPath& path, OverlayMember to) const;
  // The shortest path that passes only the sites of its two ends, else the shortest one.
  [[nodiscard]] std::optional<OverlayPath> path_to(OverlayMember to);

  // Grows whenever lost_members() may have changed.
  [[nodiscard]] std::uint64_t changes_of_lost() const { return changes_of_lost_; }
  // By member, whether it is lost. Members that have left lose no member: they count as if they were still there.
  [[nodiscard]] std::vector<bool> lost_members() const;

 private:
  static constexpr OverlayMember kNobody = ~OverlayMember{0};
  // By member: the one before it on the shortest path from this one; kNobody: there is none.
  using Tree = std::vector<OverlayMember>;
  // `site`: only members of that site and of the own one; none: all.
  [[nodiscard]] Tree tree(std::optional<std::uint32_t> site) const;
  [[nodiscard]] std::optional<OverlayPath> path_in(const Tree& tree, OverlayMember to) const;
  [[nodiscard]] bool edge_holds(OverlayMember one, OverlayMember other) const;
  // The same, where the end of a member that had left counts for nothing.
  [[nodiscard]] bool edge_counts(OverlayMember one, OverlayMember other) const;
  // It has left, and its part has ended. Returns false if that is known.
  bool member_gone(OverlayMember member);
  void update_given_up(OverlayMember member);

  const OverlayGraph graph_;
  const OverlayMember own_;
  std::set<std::pair<OverlayMember, OverlayMember>> lost_edges_;  // teller, lost
  std::set<OverlayMember> left_;
  std::set<OverlayMember> gone_;  // have left, and pass nothing on any more
  // By member: every peer in its site has given it up or is gone, at least one the former. A peer that has left and still passes
  // messages on notices its end as any other.
  std::vector<bool> given_up_;
  std::uint64_t changes_of_lost_ = 0;
  std::map<std::optional<std::uint32_t>, Tree> trees_;  // by site, as far as they are known
};

}  // namespace seto
