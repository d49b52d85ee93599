#include "src/topology/search/channel_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "tests/support/seed.h"

namespace seto {
namespace {

constexpr double kGiga = 1e9;

// Members that all reach each other over a switch, each with a port of this rate.
HopGraph switched(int members, double rate) {
  HopGraph graph(members);
  std::vector<std::pair<int, int>> ports;
  for (int i = 0; i < members; ++i) {
    const int out = graph.add_shared(rate);
    ports.emplace_back(out, graph.add_shared(rate));
  }
  for (int from = 0; from < members; ++from)
    for (int to = 0; to < members; ++to)
      if (from != to)
        graph.set_hop(
            from, to,
            {HopKind::gpu_switch, {ports[static_cast<std::size_t>(from)].first, ports[static_cast<std::size_t>(to)].second}});
  return graph;
}

// Adds a direct link in both directions.
void join(HopGraph& graph, int a, int b, double rate) {
  graph.set_hop(a, b, {HopKind::gpu_link, {graph.add_shared(rate)}});
  graph.set_hop(b, a, {HopKind::gpu_link, {graph.add_shared(rate)}});
}

// Members that are joined over one shared link in each direction, unless join() says better.
HopGraph over_interconnect(int members, double rate) {
  HopGraph graph(members);
  const int shared = graph.add_shared(rate);
  for (int from = 0; from < members; ++from)
    for (int to = 0; to < members; ++to)
      if (from != to) graph.set_hop(from, to, {HopKind::other_node, {shared}});
  return graph;
}

void expect_once_each(const RingOrder& ring, int members) {
  EXPECT_EQ(ring.size(), static_cast<std::size_t>(members));
  EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(), static_cast<std::size_t>(members));
  for (const int member : ring) EXPECT_TRUE(member >= 0 && member < members) << member;
}

// One root, at most two children for each member, and every member below the root.
void expect_tree(const TreeParents& parents, int members) {
  ASSERT_EQ(parents.size(), static_cast<std::size_t>(members));
  EXPECT_EQ(std::count(parents.begin(), parents.end(), -1), 1);
  for (int member = 0; member < members; ++member) {
    EXPECT_LE(std::count(parents.begin(), parents.end(), member), 2) << "children of " << member;
    int at = member;
    for (int hops = 0; at >= 0 && hops <= members; ++hops) at = parents[static_cast<std::size_t>(at)];
    EXPECT_EQ(at, -1) << "member " << member << " is in a cycle";
  }
}

// The channels leave no shared link with more than its rate.
void expect_rings_within_rates(const HopGraph& graph, const FoundChannels& found) {
  std::vector<double> load(graph.shared().size());
  for (const RingOrder& ring : found.channels)
    for (std::size_t i = 0; ring.size() > 1 && i < ring.size(); ++i)
      for (const int link : graph.hop(ring[i], ring[(i + 1) % ring.size()]).shared)
        load[static_cast<std::size_t>(link)] += found.channel_bytes_per_second;
  for (std::size_t link = 0; link < load.size(); ++link)
    EXPECT_LE(load[link], graph.shared()[link] * (1 + 1e-5)) << "link " << link;
}

void expect_trees_within_rates(const HopGraph& graph, const FoundChannels& found) {
  std::vector<double> load(graph.shared().size());
  for (const TreeParents& parents : found.channels)
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] < 0) continue;
      const int child = static_cast<int>(i);
      for (const Hop* hop : {&graph.hop(parents[i], child), &graph.hop(child, parents[i])})
        for (const int link : hop->shared) load[static_cast<std::size_t>(link)] += found.channel_bytes_per_second;
    }
  for (std::size_t link = 0; link < load.size(); ++link)
    EXPECT_LE(load[link], graph.shared()[link] * (1 + 1e-5)) << "link " << link;
}

TEST(ChannelSearch, RingsFillThePortsOfASwitch) {
  const HopGraph graph = switched(8, 450 * kGiga);
  const FoundChannels found = find_rings(graph, {}, {});
  EXPECT_FALSE(found.is_fallback);
  EXPECT_EQ(found.worst_hop, HopKind::gpu_switch);
  EXPECT_NEAR(found.bytes_per_second(), 450 * kGiga, 1e3);
  EXPECT_EQ(found.channels.size(), 9U) << "the fewest that stay below the rate of a channel";
  for (const RingOrder& ring : found.channels) expect_once_each(ring, 8);
  expect_rings_within_rates(graph, found);
}

TEST(ChannelSearch, TheNumberOfChannelsServesEachRailAlike) {
  std::vector<int> starts;
  for (int port = 0; port < 16; ++port) starts.push_back(port / 2);
  const FoundChannels found = find_rings(switched(8, 450 * kGiga), {}, starts);
  EXPECT_NEAR(found.bytes_per_second(), 450 * kGiga, 1e3);
  ASSERT_EQ(found.channels.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(found.channels[i].front(), starts[i]);
}

// A cube of direct links, 0 to 3 above 4 to 7, as in hosts of eight V100: rings must use direct links alone, in both directions.
TEST(ChannelSearch, RingsOfDirectLinksUseBothDirections) {
  HopGraph graph = over_interconnect(8, 10 * kGiga);
  for (const int base : {0, 4})
    for (int i = 0; i < 4; ++i) join(graph, base + i, base + (i + 1) % 4, 25 * kGiga);
  for (int i = 0; i < 4; ++i) join(graph, i, i + 4, 25 * kGiga);
  const FoundChannels found = find_rings(graph, {}, {});
  EXPECT_EQ(found.worst_hop, HopKind::gpu_link);
  EXPECT_GE(found.bytes_per_second(), 50 * kGiga) << "a ring in each direction";
  for (const RingOrder& ring : found.channels) expect_once_each(ring, 8);
  expect_rings_within_rates(graph, found);
}

// Pairs of GPUs with a bridge: no ring of direct links alone exists.
TEST(ChannelSearch, ARingOverPairsUsesTheirLinksAndCrossesTheInterconnectOnlyBetweenThem) {
  HopGraph graph = over_interconnect(6, 12 * kGiga);
  for (const int first : {0, 2, 4}) join(graph, first, first + 1, 100 * kGiga);
  const FoundChannels found = find_rings(graph, {}, {});
  EXPECT_EQ(found.worst_hop, HopKind::other_node);
  EXPECT_NEAR(found.bytes_per_second(), 4 * kGiga, 1e3) << "three of six hops share the interconnect";
  const RingOrder& ring = found.channels.front();
  for (std::size_t i = 0; i < 6; i += 2) EXPECT_EQ(ring[i] / 2, ring[i + 1] / 2);
}

TEST(ChannelSearch, OneMemberAndTwo) {
  const FoundChannels one = find_rings(HopGraph(1), {}, {});
  EXPECT_EQ(one.channels, (std::vector<RingOrder>{{0}}));
  EXPECT_EQ(one.bytes_per_second(), 0);
  EXPECT_EQ(find_trees(HopGraph(1), {}, {}).channels, (std::vector<TreeParents>{{-1}}));
  const HopGraph pair = switched(2, 40 * kGiga);
  EXPECT_NEAR(find_rings(pair, {}, {}).bytes_per_second(), 40 * kGiga, 1e3);
  EXPECT_NEAR(find_trees(pair, {}, {}).bytes_per_second(), 40 * kGiga, 1e3);
}

TEST(ChannelSearch, TreesHaveAtMostTwoChildrenAndSeveralRoots) {
  const HopGraph graph = switched(8, 450 * kGiga);
  const FoundChannels found = find_trees(graph, {}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_FALSE(found.is_fallback);
  EXPECT_GE(found.bytes_per_second(), 0.5 * 450 * kGiga);
  expect_trees_within_rates(graph, found);
  for (std::size_t i = 0; i < found.channels.size(); ++i) {
    expect_tree(found.channels[i], 8);
    EXPECT_EQ(found.channels[i][i % 8], -1) << "the root is the member at the rail";
  }
}

TEST(ChannelSearch, ABudgetThatEndsGivesTheMembersInOrder) {
  SearchLimits limits;
  limits.steps = 3;
  const HopGraph graph = over_interconnect(5, 10 * kGiga);
  const FoundChannels found = find_rings(graph, limits, {2});
  EXPECT_TRUE(found.is_fallback);
  EXPECT_LE(found.steps, limits.steps);
  EXPECT_EQ(found.channels, (std::vector<RingOrder>{{2, 3, 4, 0, 1}}));
  EXPECT_NEAR(found.bytes_per_second(), 2 * kGiga, 1) << "five hops share the link";
  expect_rings_within_rates(graph, found);
  expect_tree(find_trees(graph, limits, {2}).channels.front(), 5);
}

// A link of rate 0 leaves no speed to try.
TEST(ChannelSearch, ADeadLinkStillGivesAnAnswer) {
  const FoundChannels found = find_rings(over_interconnect(3, 0), {}, {});
  EXPECT_TRUE(found.is_fallback);
  expect_once_each(found.channels.front(), 3);
  EXPECT_EQ(found.bytes_per_second(), 0);
}

TEST(ChannelSearch, TheLadderDescendsAndIsBounded) {
  HopGraph graph(2);
  for (int i = 1; i <= 30; ++i) graph.add_shared(i * kGiga);
  const std::vector<double> speeds = speed_ladder(graph, {});
  EXPECT_LE(speeds.size(), 64U);
  EXPECT_TRUE(std::is_sorted(speeds.rbegin(), speeds.rend()));
  EXPECT_EQ(speeds.front(), 30 * kGiga);
  EXPECT_NEAR(speeds.back(), kGiga / 32, 1);
}

// Random hosts: groups of uneven sizes, each joined by a switch, by a few direct links or by PCI, with an interconnect between.
class RandomHops final {
 public:
  RandomHops(std::mt19937_64& random, int members) : random_(random), graph_(members) {
    group_.resize(static_cast<std::size_t>(members));
    for (int& group : group_) group = static_cast<int>(below(1 + below(8)));
    between_ = graph_.add_shared(rate());
    std::vector<std::pair<int, int>> ports;
    for (int i = 0; i < members; ++i) {
      const int out = graph_.add_shared(rate());
      ports.emplace_back(out, graph_.add_shared(rate()));
    }
    for (int from = 0; from < members; ++from)
      for (int to = 0; to < members; ++to)
        if (from != to)
          graph_.set_hop(from, to,
                         hop(from, to, ports[static_cast<std::size_t>(from)].first, ports[static_cast<std::size_t>(to)].second));
  }

  const HopGraph& graph() const { return graph_; }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  double rate() { return kGiga * static_cast<double>(1 + below(400)); }

  Hop hop(int from, int to, int out, int in) {
    if (group_[static_cast<std::size_t>(from)] != group_[static_cast<std::size_t>(to)])
      return {HopKind::other_node, {out, between_, in}};
    if (below(4) == 0) return {HopKind::gpu_link, {graph_.add_shared(rate())}};
    return {below(2) == 0 ? HopKind::gpu_switch : HopKind::one_switch, {out, in}};
  }

  std::mt19937_64& random_;
  HopGraph graph_;
  std::vector<int> group_;
  int between_ = 0;
};

TEST(ChannelSearch, EndsWithinItsBudgetOnRandomHostsOf1To64Members) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int members = 1; members <= 64; members += members < 16 ? 1 : 5) {
    SCOPED_TRACE(std::to_string(members) + " members");
    const RandomHops hops(random, members);
    SearchLimits limits;
    limits.steps = 20'000;
    std::vector<int> starts;
    for (int i = 0; i < static_cast<int>(random() % 5); ++i)
      starts.push_back(static_cast<int>(random() % static_cast<unsigned>(members)));
    const FoundChannels rings = find_rings(hops.graph(), limits, starts);
    ASSERT_FALSE(rings.channels.empty());
    EXPECT_LE(rings.channels.size(), 16U);
    EXPECT_LE(rings.steps, limits.steps);
    for (const RingOrder& ring : rings.channels) expect_once_each(ring, members);
    expect_rings_within_rates(hops.graph(), rings);
    const FoundChannels trees = find_trees(hops.graph(), limits, starts);
    EXPECT_LE(trees.steps, limits.steps);
    for (const TreeParents& parents : trees.channels) expect_tree(parents, members);
    expect_trees_within_rates(hops.graph(), trees);
    // The same input gives the same answer, as all ranks need.
    EXPECT_EQ(find_rings(hops.graph(), limits, starts).channels, rings.channels);
    EXPECT_EQ(find_trees(hops.graph(), limits, starts).channels, trees.channels);
  }
}

}  // namespace
}  // namespace seto
