#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/topology/graph/topology_graph.h"

namespace seto {

// The way of a message between two members of a host; a smaller value is better. gpu_link: direct links between two GPUs;
// gpu_switch: over switches of GPU links; the others are PciDistance's.
enum class HopKind : std::uint8_t { gpu_link, gpu_switch, one_switch, several_switches, same_node, other_node };
inline constexpr int kHopKinds = 6;
std::string_view name_of(HopKind kind);

struct Hop {
  HopKind kind = HopKind::other_node;
  std::vector<int> shared;  // the shared links that it loads, its own outlet first
};

// A host as search sees it. Members are the GPUs in the order of the graph; a host without GPUs is one member.
class HopGraph final {
 public:
  explicit HopGraph(int members)
      : members_(members), hops_(static_cast<std::size_t>(members) * static_cast<std::size_t>(members)) {}
  static HopGraph of(const TopologyHost& host);

  // Returns the number of a new shared link, which carries this much in one direction.
  int add_shared(double bytes_per_second);
  void set_hop(int from, int to, Hop hop) { hops_[index(from, to)] = std::move(hop); }

  [[nodiscard]] int members() const { return members_; }
  [[nodiscard]] const Hop& hop(int from, int to) const { return hops_[index(from, to)]; }
  [[nodiscard]] const std::vector<double>& shared() const { return shared_; }  // bytes a second
  // The bytes a second that a member can send over all its outlets of these kinds and better ones.
  [[nodiscard]] double outlet(int member, HopKind worst) const;

 private:
  [[nodiscard]] std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(members_) + static_cast<std::size_t>(to);
  }

  int members_;
  std::vector<Hop> hops_;
  std::vector<double> shared_;
};

}  // namespace seto
