#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto {

// A process of an overlay: its index in the order of first ranks.
using OverlayMember = std::uint32_t;

struct OverlayPlace {
  std::uint32_t host = 0;
  std::uint32_t site = 0;
};

// Which processes have a control channel where not every pair has one: those of a site with the members at distances 1, 2, 4, ...
// on both sides, and a few pairs for each two sites. Processes of one host never have one. All members compute the same. Constant
// once made.
class OverlayGraph final {
 public:
  explicit OverlayGraph(std::vector<OverlayPlace> places);

  [[nodiscard]] OverlayMember members() const { return static_cast<OverlayMember>(places_.size()); }
  [[nodiscard]] const OverlayPlace& place(OverlayMember member) const { return places_[member]; }
  [[nodiscard]] bool same_site(OverlayMember one, OverlayMember other) const { return places_[one].site == places_[other].site; }
  // Ascending.
  [[nodiscard]] const std::vector<OverlayMember>& peers(OverlayMember member) const { return peers_[member]; }
  [[nodiscard]] bool adjacent(OverlayMember one, OverlayMember other) const;

 private:
  void join(OverlayMember one, OverlayMember other);
  void join_site(const std::vector<OverlayMember>& site);
  void join_sites(const std::vector<OverlayMember>& one, const std::vector<OverlayMember>& other);
  void sort_peers();
  [[nodiscard]] bool connected() const;

  std::vector<OverlayPlace> places_;
  std::vector<std::vector<OverlayMember>> peers_;
};

}  // namespace seto
