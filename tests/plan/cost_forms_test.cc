// Cost forms against the plans that they describe: hops, bytes of ports, passes through memory and codings are counted.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/plan/cost.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"
#include "tests/support/uneven_tiers.h"

namespace seto {
namespace {

struct Ports {  // of one rank on one tier, in chunks
  double out = 0;
  double in = 0;
};

struct Counted {
  double hops = 0;
  std::array<double, kMostTiers> wire{};
  std::array<double, kMostTiers> messages{};  // of the busiest rank, for each slice
  std::array<double, kMostTiers> all_messages{};
  RankLoad rank;
  double in_messages = 0;  // sent and received by one rank
  double coded = 0;
};

Plan lowered_plan(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers) {
  Plan plan = build_plan(algorithm, shape, tiers, {});
  for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
  return plan;
}

// Messages that a rank sends and receives on each tier. Within a node one message serves all receivers of a channel.
std::array<double, kMostTiers> messages_of(const Program& program, const Tiers& tiers) {
  std::array<double, kMostTiers> messages{};
  for (const Channel& channel : program.channels) {
    if (channel.sender != program.rank) {
      ++messages[static_cast<std::size_t>(tiers.between(channel.sender, program.rank))];
      continue;
    }
    bool is_written = false;
    for (const Rank receiver : program.receivers_of(channel)) {
      const int tier = tiers.between(program.rank, receiver);
      const bool in_node = tiers.kind(tier) == TierKind::node;
      if (!in_node || !is_written) ++messages[static_cast<std::size_t>(tier)];
      is_written = is_written || in_node;
    }
  }
  return messages;
}

// Ranks of other nodes with which a rank exchanges messages.
double peers_elsewhere(const Program& program, const Tiers& tiers) {
  std::set<Rank> peers;
  const auto add = [&](Rank peer) {
    if (peer != program.rank && tiers.kind(tiers.between(program.rank, peer)) != TierKind::node) peers.insert(peer);
  };
  for (const Channel& channel : program.channels) {
    add(channel.sender);
    for (const Rank receiver : program.receivers_of(channel))
      if (channel.sender == program.rank) add(receiver);
  }
  return static_cast<double>(peers.size());
}

// Counts what the busiest rank does, in parts.
Counted count(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers) {
  const Plan plan = lowered_plan(algorithm, shape, tiers);
  Counted counted;
  std::vector<std::array<Ports, kMostTiers>> ports(plan.programs.size());
  for (const Program& program : plan.programs) {
    const StepCost cost = cost_of(program);
    counted.rank.steps = std::max(counted.rank.steps, double(program.steps.size()));
    counted.rank.memory =
        std::max(counted.rank.memory, double(cost.read + cost.written + cost.received + cost.sent) / shape.pieces);
    counted.in_messages = std::max(counted.in_messages, double(cost.sent + cost.received) / shape.pieces);
    counted.coded = std::max(counted.coded, double(cost.coded) / shape.pieces);
    counted.rank.peers = std::max(counted.rank.peers, peers_elsewhere(program, tiers));
    const std::array<double, kMostTiers> messages = messages_of(program, tiers);
    for (std::size_t tier = 0; tier < kMostTiers; ++tier) {
      counted.messages[tier] = std::max(counted.messages[tier], messages[tier]);
      counted.all_messages[tier] += messages[tier];
    }
    for (const Step& step : program.steps)
      for (const Operand& target : program.targets(step)) {
        if (target.space != Space::channel) continue;
        const Channel& channel = program.channels[target.index];
        counted.hops = std::max(counted.hops, channel.stage + 1.0);
        for (const Rank receiver : program.receivers_of(channel)) {
          const std::size_t tier = static_cast<std::size_t>(tiers.between(program.rank, receiver));
          ports[std::size_t(program.rank)][tier].out += channel.count;
          ports[std::size_t(receiver)][tier].in += channel.count;
        }
      }
  }
  for (const auto& rank : ports)
    for (std::size_t tier = 0; tier < kMostTiers; ++tier)
      counted.wire[tier] = std::max({counted.wire[tier], rank[tier].out / shape.pieces, rank[tier].in / shape.pieces});
  return counted;
}

std::vector<Tiers> all_tiers() {
  std::vector<Tiers> tiers;
  for (const int ranks : {2, 3, 4, 5, 8, 16, 32}) {
    tiers.push_back(Tiers::flat(ranks));
    tiers.push_back(made_up_tiers(ranks, ranks, 1).value());  // each rank on a host of its own, so each receiver needs a message
  }
  tiers.push_back(made_up_tiers(8, 2, 1).value());
  tiers.push_back(made_up_tiers(16, 4, 1).value());
  tiers.push_back(made_up_tiers(16, 4, 2).value());
  tiers.push_back(made_up_tiers(16, 8, 4).value());
  tiers.push_back(made_up_tiers(32, 8, 1).value());
  tiers.push_back(made_up_tiers(32, 8, 2).value());
  tiers.push_back(made_up_tiers(16, 16, 2).value());
  tiers.push_back(made_up_tiers(64, 16, 4).value());
  return tiers;
}

double hops_of(const PlanLoad& load) {
  double hops = 0;
  for (const TierLoad& tier : load.tiers) hops += tier.hops;
  return hops;
}

// Calls check(algorithm, shape, tiers, what is counted, the form) for everything that is not refused.
template <class Check>
void for_each_plan(Check check) {
  for (const Tiers& tiers : all_tiers())
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, tiers.ranks(), 0, 1, Finish::none};
      shape.pieces = algorithm.pieces(shape, tiers);
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      SCOPED_TRACE(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name) + ", " +
                   std::to_string(tiers.ranks()) + " ranks, " + std::to_string(tiers.count()) + " tiers");
      check(algorithm, shape, tiers, count(algorithm, shape, tiers), algorithm.cost_form(tiers));
    }
}

TEST(CostForms, HopsAreTheStagesOfThePlan) {
  for_each_plan([](const Algorithm&, const Shape&, const Tiers&, const Counted& counted, const PlanLoad& load) {
    EXPECT_NEAR(hops_of(load), counted.hops, 1e-9);
  });
}

TEST(CostForms, MemoryIsWhatTheBusiestRankReadsAndWrites) {
  for_each_plan([](const Algorithm& algorithm, const Shape&, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
    if (algorithm.collective == Collective::barrier) return;  // its chunks are empty
    const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(tiers.ranks()));
    // Messages of several parts are cut where their parts do not lie side by side; forms do not follow that.
    EXPECT_NEAR(load.rank.memory / counted.rank.memory, 1, is_power_of_two ? 0.02 : 0.1)
        << load.rank.memory << " against " << counted.rank.memory;
  });
}

// Algorithms that need several tiers say nothing.
TEST(CostForms, SentAndReceivedAreWhatTheBusiestRankWritesIntoMessagesAndReadsFromThem) {
  for_each_plan([](const Algorithm& algorithm, const Shape&, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
    if (tiers.count() > 1 || tiers.kind(0) != TierKind::node || algorithm.collective == Collective::barrier) return;
    const double said = load.rank.sent + load.rank.received;
    const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(tiers.ranks()));
    EXPECT_NEAR(said, counted.in_messages, is_power_of_two ? 1e-9 : 0.1 * counted.in_messages);
    EXPECT_LE(said, load.rank.memory);
  });
}

// Messages of several parts are one step or two, depending on where they lie.
TEST(CostForms, StepsAreThoseOfTheBusiestRankOrSomeMore) {
  for_each_plan([](const Algorithm&, const Shape&, const Tiers&, const Counted& counted, const PlanLoad& load) {
    EXPECT_GE(load.rank.steps, counted.rank.steps);
    EXPECT_LE(load.rank.steps, 1.5 * counted.rank.steps + 1);
  });
}

// Where parts wrap, halving and doubling cut a message in two, by the number of ranks.
TEST(CostForms, MessagesAreThoseOfTheBusiestRank) {
  for_each_plan([](const Algorithm&, const Shape& shape, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
    const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(shape.ranks));
    if (tiers.count() == 1) {
      EXPECT_GE(load.tiers[0].messages, counted.messages[0]);
      EXPECT_LE(load.tiers[0].messages, counted.messages[0] + (is_power_of_two ? 0 : 2));
      return;
    }
    const auto widest = static_cast<std::size_t>(tiers.count() - 1);
    EXPECT_GE(load.tiers[widest].messages, counted.messages[widest]);
  });
}

// Ranks on hosts of their own. Algorithms whose ranks have similar work are not told apart.
TEST(CostForms, TheAverageRankHasItsShareOfTheMessages) {
  for_each_plan(
      [](const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
        if (tiers.count() > 1 || tiers.kind(0) == TierKind::node) return;
        const double average = load.tiers[0].average * load.tiers[0].messages;
        const double expected = counted.all_messages[0] / shape.ranks;
        EXPECT_GE(average, expected - 1e-9);
        EXPECT_LE(average, load.tiers[0].relays > 0 ? expected + 1e-9 : 1.6 * expected) << algorithm.name;
      });
}

TEST(CostForms, MessagesOfHierarchicalOnesAreThoseOfEachTier) {
  for_each_plan([](const Algorithm& algorithm, const Shape&, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
    if (algorithm.name != "hierarchical" && algorithm.name != "host_ring") return;
    for (std::size_t tier = 0; tier < static_cast<std::size_t>(tiers.count()); ++tier)
      EXPECT_EQ(load.tiers[tier].messages, counted.messages[tier]) << "tier " << tier;
  });
}

// Halving, doubling, trees, and an all_to_all of three tiers: a bound, because peers may be on the same node, and those to which
// a rank sends may be those from which it receives.
TEST(CostForms, PeersAreThoseOfTheBusiestRankOnOtherNodes) {
  for_each_plan([](const Algorithm& algorithm, const Shape&, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
    EXPECT_GE(load.rank.peers, counted.rank.peers);
    const bool is_bound = algorithm.name.find("halving") != algorithm.name.npos ||
                          algorithm.name.find("doubling") != algorithm.name.npos ||
                          algorithm.name.find("tree") != algorithm.name.npos ||
                          (algorithm.collective == Collective::all_to_all && tiers.count() == 3);
    EXPECT_LE(load.rank.peers, counted.rank.peers + (is_bound ? 2 * log2_up(tiers.ranks()) : 0));
  });
}

TEST(CostForms, PeersAreABoundWhereverRanksAre) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int ranks = 2; ranks <= 40; ranks += static_cast<int>(support::kEvery)) {
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks)), 1, Finish::none};
      shape.pieces = algorithm.pieces(shape, tiers);
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      SCOPED_TRACE(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name) + ", nodes of " +
                   support::text_of(homes));
      EXPECT_GE(algorithm.cost_form(tiers).rank.peers, count(algorithm, shape, tiers).rank.peers);
    }
  }
}

// Forms of algorithms that do not look at tiers assume the worst: that everything of a rank crosses the widest one.
TEST(CostForms, WireIsWhatCrossesTheBusiestPort) {
  for_each_plan([](const Algorithm& algorithm, const Shape&, const Tiers& tiers, const Counted& counted, const PlanLoad& load) {
    if (algorithm.collective == Collective::barrier) return;
    const auto widest = static_cast<std::size_t>(tiers.count() - 1);
    EXPECT_GE(load.tiers[widest].wire, counted.wire[widest] * (1 - 1e-9));
    if (tiers.count() > 1) return;
    EXPECT_NEAR(load.tiers[0].wire / counted.wire[0], 1, 1e-9);
  });
}

// The bytes that all ranks of the busiest site send over its uplink, or receive over its downlink, in parts.
double counted_on_links_of_sites(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers) {
  std::vector<Ports> sites(static_cast<std::size_t>(tiers.size(tiers.count() - 1)));
  for (const Program& program : lowered_plan(algorithm, shape, tiers).programs)
    for (const Step& step : program.steps)
      for (const Operand& target : program.targets(step)) {
        if (target.space != Space::channel) continue;
        const Channel& channel = program.channels[target.index];
        for (const Rank receiver : program.receivers_of(channel)) {
          const auto from = static_cast<std::size_t>(tiers.member_of(program.rank));
          const auto to = static_cast<std::size_t>(tiers.member_of(receiver));
          if (from == to) continue;
          sites[from].out += channel.count;
          sites[to].in += channel.count;
        }
      }
  double most = 0;
  for (const Ports& site : sites) most = std::max({most, site.out / shape.pieces, site.in / shape.pieces});
  return most;
}

// Calls check(algorithm, what is counted, the form's number) for every algorithm that runs on these tiers.
template <class Check>
void for_each_shared_load(const Tiers& tiers, Check check) {
  for (const Algorithm& algorithm : algorithms()) {
    Shape shape{algorithm.collective, tiers.ranks(), 0, 1, Finish::none};
    shape.pieces = algorithm.pieces(shape, tiers);
    if (algorithm.collective == Collective::barrier || !algorithm.refuses(shape, tiers).empty()) continue;
    SCOPED_TRACE(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name));
    const double shared = algorithm.cost_form(tiers).tiers[static_cast<std::size_t>(tiers.count() - 1)].shared;
    check(algorithm, counted_on_links_of_sites(algorithm, shape, tiers), shared);
  }
}

// The sites are numbered one after another, as jobs place ranks.
TEST(CostForms, SharedIsWhatCrossesTheLinksOfTheBusiestSite) {
  for (const auto& [ranks, nodes, sites] : std::initializer_list<std::array<int, 3>>{
           {2, 2, 2}, {3, 3, 3}, {4, 2, 2}, {4, 4, 2}, {8, 4, 2}, {8, 8, 8}, {12, 6, 3}, {16, 8, 4}, {32, 8, 2}, {24, 4, 2}}) {
    const Tiers tiers = made_up_tiers(ranks, nodes, sites).value();
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(nodes) + " nodes, " + std::to_string(sites) + " sites");
    for_each_shared_load(tiers, [&](const Algorithm& algorithm, double counted, double shared) {
      // Pairs: a bound where the number of ranks is no power of two.
      const bool is_bound = algorithm.name == "recursive_doubling" && !std::has_single_bit(static_cast<unsigned>(ranks));
      EXPECT_GE(shared, counted * (1 - 1e-9));
      EXPECT_LE(shared, counted * (is_bound ? 2.2 : 1 + 1e-9));
    });
  }
}

TEST(CostForms, SharedIsABoundWhereverRanksAre) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int ranks = 4; ranks <= 40; ranks += 3 * static_cast<int>(support::kEvery)) {
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = Tiers::of(homes);
    if (tiers.widest() != TierKind::world) continue;
    SCOPED_TRACE("nodes of " + support::text_of(homes));
    for_each_shared_load(tiers, [&](const Algorithm& algorithm, double counted, double shared) {
      if (support::follows_tiers(algorithm.name)) return;
      EXPECT_GE(shared, counted * (1 - 1e-9));
    });
  }
}

TEST(CostForms, NearTiersShareNoLink) {
  for (const Tiers& tiers : {Tiers::flat(8), made_up_tiers(8, 8, 1).value(), made_up_tiers(16, 4, 1).value()})
    for_each_shared_load(tiers, [](const Algorithm&, double, double shared) { EXPECT_EQ(shared, 0); });
}

// Algorithms that do not look at tiers: no port of the widest tier carries more than the form says, and the rest of the load does
// not depend on where ranks are.
TEST(CostForms, OfFlatAlgorithmsHoldWhereverRanksAre) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int ranks = 2; ranks <= 40; ranks += static_cast<int>(support::kEvery)) {
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = Tiers::of(homes);
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, 0, 1, Finish::none};
      shape.pieces = algorithm.pieces(shape, tiers);
      if (support::follows_tiers(algorithm.name) || !algorithm.refuses(shape, tiers).empty()) continue;
      SCOPED_TRACE(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name) + ", nodes of " +
                   support::text_of(homes));
      const PlanLoad load = algorithm.cost_form(tiers);
      const Counted counted = count(algorithm, shape, tiers);
      EXPECT_NEAR(hops_of(load), counted.hops, 1e-9);
      EXPECT_LE(load.rank.steps, 1.5 * counted.rank.steps + 1);
      EXPECT_GE(load.rank.steps, 0.7 * counted.rank.steps);
      if (algorithm.collective == Collective::barrier) continue;  // its chunks are empty
      EXPECT_NEAR(load.rank.memory / counted.rank.memory, 1, 0.17);
      const auto widest = static_cast<std::size_t>(tiers.count() - 1);
      EXPECT_GE(load.tiers[widest].wire, counted.wire[widest] * (1 - 1e-9));
    }
  }
}

// Nodes and sites of different sizes. What a rank holds there is even except for a chunk or two. The places are the same in every
// run: over other ones they are known to leave these bounds (4.3 times the steps on nodes of 4 | 2 | 1 1 2).
TEST(CostForms, OfHierarchicalOnesHoldOverUnevenNodesAndSites) {
  std::mt19937_64 random(1);
  std::vector<std::vector<Home>> places = {{{0, 0}, {0, 0}, {0, 0}, {1, 0}}, {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 1}}};
  for (const int ranks : {6, 10, 16, 24, 40}) places.push_back(support::random_homes(ranks, random));
  for (const std::vector<Home>& homes : places) {
    const Tiers tiers = Tiers::of(homes);
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, tiers.ranks(), 0, 1, Finish::none};
      shape.pieces = algorithm.pieces(shape, tiers);
      if (!support::follows_tiers(algorithm.name) || tiers.uniform() || !algorithm.refuses(shape, tiers).empty()) continue;
      SCOPED_TRACE(std::string(name_of(algorithm.collective)) + " " + std::string(algorithm.name) + ", nodes of " +
                   support::text_of(homes));
      const PlanLoad load = algorithm.cost_form(tiers);
      const Counted counted = count(algorithm, shape, tiers);
      const auto widest = static_cast<std::size_t>(tiers.count() - 1);
      const bool rooted = algorithm.collective == Collective::broadcast || algorithm.collective == Collective::reduce;
      // Round the hosts a rank has one chunk, so that shares of few ranks differ by more.
      const bool is_coarse = algorithm.name == "host_ring";
      EXPECT_GE(load.rank.memory, (is_coarse ? 0.75 : 0.85) * counted.rank.memory);
      EXPECT_GE(load.rank.steps, 0.5 * counted.rank.steps);
      // A form does not know the root, which need not be in the largest blocks: it is held against the root with most to do.
      RankLoad most = counted.rank;
      double hops = counted.hops;
      for (shape.root = 1; rooted && shape.root < tiers.ranks(); ++shape.root) {
        shape.pieces = algorithm.pieces(shape, tiers);
        const Counted other = count(algorithm, shape, tiers);
        most.memory = std::max(most.memory, other.rank.memory);
        most.steps = std::max(most.steps, other.rank.steps);
        hops = std::max(hops, other.hops);
      }
      EXPECT_LE(load.rank.steps, (is_coarse ? 5 : 4) * most.steps);
      if (algorithm.collective == Collective::all_to_all) {
        // Rows are not cut evenly, and where each message is one part, no rank passes anything on.
        EXPECT_GE(hops_of(load), counted.hops);
        EXPECT_LE(load.rank.memory, 1.75 * most.memory);
        for (std::size_t tier = 0; tier <= widest; ++tier) EXPECT_NEAR(load.tiers[tier].wire / counted.wire[tier], 1, 0.25);
        continue;
      }
      // A spread has a hop more where other ranks of the root's site carry its buffer, and fewer where it has none.
      EXPECT_NEAR(hops_of(load), algorithm.name == "spread" ? hops : counted.hops, 1e-9);
      EXPECT_LE(load.rank.memory, (rooted ? 2 : 1.2) * most.memory);
      for (std::size_t tier = 0; tier <= widest; ++tier) {
        EXPECT_GE(load.tiers[tier].wire, (is_coarse ? 0.6 : 0.85) * counted.wire[tier]);
        if (rooted) continue;
        EXPECT_LE(load.tiers[tier].wire, (is_coarse ? 1.25 : 1.1) * counted.wire[tier]);
      }
    }
  }
}

TEST(CostForms, CodedIsWhatTheBusiestRankEncodesAndDecodes) {
  for_each_plan([](const Algorithm& algorithm, Shape shape, const Tiers& tiers, const Counted&, const PlanLoad& load) {
    shape.codec = 1;
    const auto all = static_cast<std::uint8_t>((1U << tiers.count()) - 1);
    const auto widest = static_cast<std::uint8_t>(1U << (tiers.count() - 1));
    for (const std::uint8_t coded_tiers : {all, widest}) {
      shape.coded_tiers = coded_tiers;
      if (algorithm.encodings(shape, tiers) == 0) continue;
      double coded = 0;
      for (std::size_t tier = 0; tier < kMostTiers; ++tier)
        if ((coded_tiers >> tier & 1) != 0) coded += load.tiers[tier].coded;
      EXPECT_NEAR(coded, count(algorithm, shape, tiers).coded, 0.02 * coded);
    }
  });
}

}  // namespace
}  // namespace seto
