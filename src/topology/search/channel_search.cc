#include "src/topology/search/channel_search.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "src/topology/search/channel_load.h"

namespace seto {
namespace {

constexpr std::size_t kMostRungs = 64;
constexpr int kMostChildren = 2;

// The part of the budget that one ring may use, so that one hopeless speed leaves something for the slower ones.
std::size_t steps_of_a_ring(int members) { return 64 * static_cast<std::size_t>(members) + 2048; }

// The state that every attempt of a search shares.
struct Attempt {
  const HopGraph& graph;
  ChannelLoad load;
  HopKind worst = HopKind::gpu_link;
  double speed = 0;
  std::size_t budget = 0;  // steps that are left of the search

  bool step() {
    if (budget == 0) return false;
    --budget;
    return true;
  }
  [[nodiscard]] bool allows(int from, int to) const { return graph.hop(from, to).kind <= worst; }
};

// Finds one ring by depth first search. A ring starts at its first member and takes the best hop first: the better kind, then the
// hop that has more left, then the lower member.
class RingPlacer final {
 public:
  RingPlacer(Attempt& attempt, int start) : attempt_(attempt), used_(static_cast<std::size_t>(attempt.graph.members())) {
    visit(start);
  }

  std::optional<RingOrder> place() {
    own_budget_ = steps_of_a_ring(attempt_.graph.members());
    if (!extend()) return std::nullopt;
    return ring_;
  }

 private:
  void visit(int member) {
    ring_.push_back(member);
    used_[static_cast<std::size_t>(member)] = true;
  }

  [[nodiscard]] std::vector<int> next_members() const {
    const HopGraph& graph = attempt_.graph;
    const int last = ring_.back();
    std::vector<int> next;
    std::vector<double> left(used_.size());
    for (int to = 0; to < graph.members(); ++to) {
      if (used_[static_cast<std::size_t>(to)] || !attempt_.allows(last, to)) continue;
      left[static_cast<std::size_t>(to)] = attempt_.load.left_over(graph.hop(last, to));
      next.push_back(to);
    }
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) {
      const Hop& one = graph.hop(last, a);
      const Hop& other = graph.hop(last, b);
      return one.kind != other.kind ? one.kind < other.kind
                                    : left[static_cast<std::size_t>(a)] > left[static_cast<std::size_t>(b)];
    });
    return next;
  }

  bool extend() {
    const HopGraph& graph = attempt_.graph;
    const int last = ring_.back();
    if (static_cast<int>(ring_.size()) == graph.members())
      return attempt_.allows(last, ring_.front()) && attempt_.load.take(graph.hop(last, ring_.front()), attempt_.speed);
    for (const int to : next_members()) {
      if (own_budget_ == 0 || !attempt_.step()) return false;
      --own_budget_;
      if (!attempt_.load.take(graph.hop(last, to), attempt_.speed)) continue;
      visit(to);
      if (extend()) return true;
      used_[static_cast<std::size_t>(to)] = false;
      ring_.pop_back();
      attempt_.load.give_back(graph.hop(last, to), attempt_.speed);
    }
    return false;
  }

  Attempt& attempt_;
  std::vector<bool> used_;
  RingOrder ring_;
  std::size_t own_budget_ = 0;
};

// Finds one tree: the member that can join over the best kind of hop joins, as near to the root as it can. Sums go up the tree
// and results down, so both directions of a hop are loaded.
class TreePlacer final {
 public:
  TreePlacer(Attempt& attempt, int root) : attempt_(attempt), parents_(size(), -1), depth_(size(), -1), children_(size()) {
    depth_[static_cast<std::size_t>(root)] = 0;
  }

  std::optional<TreeParents> place() {
    for (int joined = 1; joined < attempt_.graph.members(); ++joined)
      if (!join_one()) return std::nullopt;
    return parents_;
  }

 private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(attempt_.graph.members()); }

  // A smaller value joins first.
  struct Rank {
    HopKind kind;
    int depth;
    double minus_left;  // members with more left become parents, so that trees load different members
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  bool join_one() {
    std::optional<Rank> best;
    int parent = 0;
    int child = 0;
    for (int from = 0; from < attempt_.graph.members(); ++from) {
      if (depth_[static_cast<std::size_t>(from)] < 0 || children_[static_cast<std::size_t>(from)] == kMostChildren) continue;
      for (int to = 0; to < attempt_.graph.members(); ++to) {
        if (depth_[static_cast<std::size_t>(to)] >= 0 || !attempt_.allows(from, to) || !attempt_.allows(to, from)) continue;
        if (!attempt_.step()) return false;
        const double left = least_left(from, to);
        if (left < attempt_.speed * (1 - ChannelLoad::kRounding)) continue;
        const Rank rank{attempt_.graph.hop(from, to).kind, depth_[static_cast<std::size_t>(from)], -left};
        if (best && !(rank < *best)) continue;
        best = rank;
        parent = from;
        child = to;
      }
    }
    if (!best || !take(parent, child)) return false;
    parents_[static_cast<std::size_t>(child)] = parent;
    depth_[static_cast<std::size_t>(child)] = depth_[static_cast<std::size_t>(parent)] + 1;
    ++children_[static_cast<std::size_t>(parent)];
    return true;
  }

  [[nodiscard]] double least_left(int a, int b) const {
    return std::min(attempt_.load.left_over(attempt_.graph.hop(a, b)), attempt_.load.left_over(attempt_.graph.hop(b, a)));
  }

  // Both directions may share a link, so the second one may fail.
  bool take(int a, int b) {
    if (!attempt_.load.take(attempt_.graph.hop(a, b), attempt_.speed)) return false;
    if (attempt_.load.take(attempt_.graph.hop(b, a), attempt_.speed)) return true;
    attempt_.load.give_back(attempt_.graph.hop(a, b), attempt_.speed);
    return false;
  }

  Attempt& attempt_;
  TreeParents parents_;
  std::vector<int> depth_;  // -1: has not joined
  std::vector<int> children_;
};

struct Rings {
  static std::optional<RingOrder> place(Attempt& attempt, int start) { return RingPlacer(attempt, start).place(); }
  static RingOrder in_order(int members, int start) {
    RingOrder ring;
    for (int i = 0; i < members; ++i) ring.push_back((start + i) % members);
    return ring;
  }
  static void add_hops(const RingOrder& ring, const std::function<void(int, int)>& hop) {
    for (std::size_t i = 0; i < ring.size(); ++i) hop(ring[i], ring[(i + 1) % ring.size()]);
  }
  // The most that rings can carry: all that the weakest member can send.
  static double bound(double outlet) { return outlet; }
};

struct Trees {
  static std::optional<TreeParents> place(Attempt& attempt, int start) { return TreePlacer(attempt, start).place(); }
  static TreeParents in_order(int members, int start) {
    TreeParents parents(static_cast<std::size_t>(members), -1);
    for (int i = 1; i < members; ++i)
      parents[static_cast<std::size_t>((start + i) % members)] = (start + (i - 1) / kMostChildren) % members;
    return parents;
  }
  static void add_hops(const TreeParents& parents, const std::function<void(int, int)>& hop) {
    for (std::size_t i = 0; i < parents.size(); ++i)
      if (parents[i] >= 0) {
        hop(parents[i], static_cast<int>(i));
        hop(static_cast<int>(i), parents[i]);
      }
  }
  // A tree of n members has n - 1 hops up and n - 1 down, so no number of trees is known to be perfect.
  static double bound(double) { return ChannelLoad::kUnlimited; }
};

template <class Kind>
class Ladder final {
 public:
  Ladder(const HopGraph& graph, const SearchLimits& limits, const std::vector<int>& starts)
      : graph_(graph), limits_(limits), starts_(starts), budget_(limits.steps) {
    if (starts_.empty()) starts_.push_back(0);
  }

  FoundChannels find() {
    if (graph_.members() == 1) return single();
    const std::vector<double> speeds = speed_ladder(graph_, limits_);
    for (const HopKind worst : kinds()) {
      FoundChannels best;
      for (const double speed : speeds) {
        if (speed * limits_.most_channels < best.bytes_per_second() * (1 - ChannelLoad::kRounding)) break;
        FoundChannels here = at(worst, speed);
        if (!here.channels.empty() && is_better(here, best)) best = std::move(here);
        if (is_perfect(best, worst) || budget_ == 0) break;
      }
      if (!best.channels.empty()) return finished(std::move(best));
    }
    return finished(fallback());
  }

 private:
  FoundChannels single() const {
    FoundChannels found;
    found.channels.push_back(Kind::in_order(1, 0));
    return found;
  }

  // The kinds of hops that the host has, the best first.
  [[nodiscard]] std::vector<HopKind> kinds() const {
    std::vector<HopKind> kinds;
    for (int from = 0; from < graph_.members(); ++from)
      for (int to = 0; to < graph_.members(); ++to)
        if (from != to) kinds.push_back(graph_.hop(from, to).kind);
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    return kinds;
  }

  [[nodiscard]] int start(std::size_t channel) const { return starts_[channel % starts_.size()]; }

  // As many channels of this speed as fit.
  FoundChannels at(HopKind worst, double speed) {
    Attempt attempt{graph_, ChannelLoad(graph_), worst, speed, budget_};
    FoundChannels found;
    found.channel_bytes_per_second = speed;
    while (static_cast<int>(found.channels.size()) < limits_.most_channels) {
      auto one = Kind::place(attempt, start(found.channels.size()));
      if (!one) break;
      found.channels.push_back(std::move(*one));
    }
    budget_ = attempt.budget;
    return found;
  }

  [[nodiscard]] bool serves_all_rails(const FoundChannels& found) const { return found.channels.size() % starts_.size() == 0; }

  bool is_better(const FoundChannels& one, const FoundChannels& other) const {
    const double more = one.bytes_per_second() - other.bytes_per_second();
    if (std::abs(more) > ChannelLoad::kRounding * one.bytes_per_second()) return more > 0;
    if (serves_all_rails(one) != serves_all_rails(other)) return serves_all_rails(one);
    return one.channels.size() < other.channels.size();
  }

  bool is_perfect(const FoundChannels& found, HopKind worst) const {
    if (found.channels.empty() || (!serves_all_rails(found) && static_cast<int>(starts_.size()) <= limits_.most_channels))
      return false;
    double least = ChannelLoad::kUnlimited;
    for (int member = 0; member < graph_.members(); ++member) least = std::min(least, graph_.outlet(member, worst));
    return found.bytes_per_second() >= Kind::bound(least) * (1 - ChannelLoad::kRounding);
  }

  // One channel of the members in their order, at the speed that its hops leave each other.
  FoundChannels fallback() const {
    FoundChannels found;
    found.is_fallback = true;
    found.channels.push_back(Kind::in_order(graph_.members(), start(0)));
    std::vector<int> uses(graph_.shared().size());
    double speed = limits_.channel_bytes_per_second;
    Kind::add_hops(found.channels[0], [&](int from, int to) {
      for (const int link : graph_.hop(from, to).shared) ++uses[static_cast<std::size_t>(link)];
    });
    for (std::size_t link = 0; link < uses.size(); ++link)
      if (uses[link] > 0) speed = std::min(speed, graph_.shared()[link] / uses[link]);
    found.channel_bytes_per_second = speed;
    return found;
  }

  FoundChannels finished(FoundChannels found) const {
    for (const auto& channel : found.channels)
      Kind::add_hops(channel, [&](int from, int to) { found.worst_hop = std::max(found.worst_hop, graph_.hop(from, to).kind); });
    found.steps = limits_.steps - budget_;
    return found;
  }

  const HopGraph& graph_;
  const SearchLimits& limits_;
  std::vector<int> starts_;
  std::size_t budget_;
};

}  // namespace

std::vector<double> speed_ladder(const HopGraph& graph, const SearchLimits& limits) {
  std::vector<double> speeds;
  for (const double rate : graph.shared())
    for (int parts = 1; parts <= 2 * limits.most_channels; ++parts)
      if (rate > 0) speeds.push_back(std::min(rate / parts, limits.channel_bytes_per_second));
  if (speeds.empty()) speeds.push_back(limits.channel_bytes_per_second);
  std::sort(speeds.begin(), speeds.end(), std::greater<>());
  const auto same = [](double a, double b) { return a - b <= a * ChannelLoad::kRounding; };
  speeds.erase(std::unique(speeds.begin(), speeds.end(), same), speeds.end());
  if (speeds.size() <= kMostRungs) return speeds;
  std::vector<double> rungs;
  for (std::size_t i = 0; i < kMostRungs; ++i) rungs.push_back(speeds[i * (speeds.size() - 1) / (kMostRungs - 1)]);
  return rungs;
}

FoundChannels find_rings(const HopGraph& graph, const SearchLimits& limits, const std::vector<int>& starts) {
  return Ladder<Rings>(graph, limits, starts).find();
}

FoundChannels find_trees(const HopGraph& graph, const SearchLimits& limits, const std::vector<int>& starts) {
  return Ladder<Trees>(graph, limits, starts).find();
}

}  // namespace seto
