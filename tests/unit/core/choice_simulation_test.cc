// The algorithm that the cost forms choose against the simulated time of all candidates' plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "src/core/choice/planner.h"
#include "src/engine/lowering.h"
#include "src/engine/simulation/simulated_engine.h"
#include "tests/support/sanitizers.h"

namespace seto {
namespace {

constexpr double kStepNs = 22;  // one fused step: docs/figures.md
constexpr double kNearTheBest = 1.25;
constexpr double kShare = 0.95;
constexpr std::uint64_t kSizes[] = {8, 128, 2 << 10, 32 << 10, 512 << 10, 8 << 20, 128 << 20, 256 << 20};
constexpr std::uint64_t kGrain = 16;  // elements of a cache line
constexpr std::uint64_t kElement = 4;
// A long call repeats itself: the time of more slices follows from what the last ones of a shorter call add.
constexpr std::uint64_t kMostSlices = 24;

struct Place {
  std::string name;
  Tiers tiers;
  double crowding = 1;  // ranks for each core
};

// Each site has an uplink and a downlink that its ranks share.
void add_sites(SimulatedMachine& machine, const Tiers& tiers, const CostModel& model) {
  const auto sites = static_cast<std::uint32_t>(tiers.size(tiers.count() - 1));
  machine.shared_bytes_per_ns.assign(2 * sites, model.world.bytes_per_second * 1e-9);
  for (std::uint32_t from = 0; from < sites; ++from)
    for (std::uint32_t to = 0; to < sites; ++to) machine.shared_ways.push_back({from, sites + to});
}

// Messages within a node cost latency and the time of the processors alone: their bytes pass through memory. On the other tiers
// each rank has one port. Ranks that share cores are apart as far as the plan knows, and share the rate of their sockets.
SimulatedMachine machine_of(const Place& place, const CostModel& model) {
  const Tiers& tiers = place.tiers;
  SimulatedMachine machine;
  if (place.crowding > 1) {
    machine.node_of.assign(static_cast<std::size_t>(tiers.ranks()), 0);
    machine.cores_per_node = static_cast<std::uint32_t>(tiers.ranks() / place.crowding);
  }
  machine.step_ns = kStepNs;
  machine.pass_ns_per_byte = 1e9 / (2 * model.node.bytes_per_second);
  if (tiers.widest() == TierKind::world) add_sites(machine, tiers, model);
  machine.link = [&tiers, &model, crowding = place.crowding](Rank from, Rank to) {
    const std::size_t tier = static_cast<std::size_t>(tiers.between(from, to));
    const TierKind kind = tiers.kind(static_cast<int>(tier));
    const auto port = [&](Rank rank) {
      return static_cast<std::uint32_t>(2 * (static_cast<std::size_t>(rank) * kMostTiers + tier));
    };
    SimulatedLink link;
    link.message_ns = model.of(kind).message_seconds * 1e9;
    link.written_once = kind == TierKind::node;
    link.latency_ns = (model.of(kind).latency_seconds + (crowding > 1 ? model.switch_seconds : 0)) * 1e9 - 2 * link.message_ns;
    link.ns_per_byte = kind == TierKind::node ? 0 : crowding * 1e9 / model.of(kind).bytes_per_second;
    link.wire = port(from);
    link.far_wire = port(to) + 1;
    if (kind == TierKind::world) {
      link.ns_per_byte = crowding * 1e9 / model.site.bytes_per_second;
      link.shared_way = static_cast<std::uint32_t>(tiers.member_of(from) * tiers.size(tiers.count() - 1) + tiers.member_of(to));
    }
    return link;
  };
  return machine;
}

std::vector<Place> places() {
  std::vector<Place> places;
  for (const int ranks : {2, 3, 4, 5, 8, 16, 32}) {
    const std::string of_ranks = std::to_string(ranks) + " ranks on ";
    places.push_back({of_ranks + "one node", Tiers::flat(ranks)});
    places.push_back({of_ranks + "as many nodes", made_up_tiers(ranks, ranks, 1).value()});
    places.push_back({of_ranks + "as many sites", made_up_tiers(ranks, ranks, ranks).value()});
  }
  for (const int on_a_node : {2, 4}) {
    const std::string size = on_a_node == 2 ? "4 x 2" : "4 x 4";
    places.push_back({size + " ranks on nodes", made_up_tiers(4 * on_a_node, 4, 1).value()});
    places.push_back({size + " ranks on sites", made_up_tiers(4 * on_a_node, 4, 4).value()});
  }
  for (const int ranks : {4, 8}) {
    const std::string name = std::to_string(ranks) + " ranks on half as many cores, over sockets";
    places.push_back({name, made_up_tiers(ranks, ranks, 1).value(), 2});
  }
  places.push_back({"2 x 4 ranks on nodes", made_up_tiers(8, 2, 1).value()});
  places.push_back({"2 x 4 ranks on sites", made_up_tiers(8, 2, 2).value()});
  return places;
}

double simulated(const Plan& plan, const Place& place, std::uint64_t count, std::uint64_t slice, StepOrder order) {
  const CostModel model;
  std::vector<Layout> layouts;
  for (Rank rank = 0; rank < plan.shape.ranks; ++rank) layouts.push_back(Layout::uniform(plan.shape, rank, count, kGrain));
  const SimulatedMachine machine = machine_of(place, model);
  SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = slice};
  run.order = order;
  run.depth = place.tiers.widest() == TierKind::node ? 2 : 64;  // slots; what TCP lets be under way
  const Result<SimulatedOutcome> outcome = simulate(run);
  EXPECT_TRUE(outcome.ok()) << outcome.status().text();
  return outcome.ok() ? outcome.value().longest_ns() * 1e-9 : std::numeric_limits<double>::quiet_NaN();
}

// Simulated seconds of one algorithm, cut as choice cuts it.
double seconds_of(const Algorithm& algorithm, const Question& question, const Place& place) {
  Question pinned = question;
  pinned.pin = algorithm.name;
  const Cut cut = choose(pinned, place.tiers, {}).value().cut;
  Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  shape.pieces = algorithm.pieces(shape, place.tiers);
  Plan plan = build_plan(algorithm, shape, place.tiers, {});
  for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
  const std::uint64_t count = question.bytes / kElement;
  const std::uint64_t slice = cut.slice_bytes / kElement;
  const std::uint64_t slices = (count / shape.pieces + slice - 1) / slice;
  if (slices <= kMostSlices) return simulated(plan, place, count, slice, cut.order);
  const double all = simulated(plan, place, kMostSlices * slice * shape.pieces, slice, cut.order);
  const double half = simulated(plan, place, kMostSlices / 2 * slice * shape.pieces, slice, cut.order);
  return all + static_cast<double>(slices - kMostSlices) * (all - half) / (kMostSlices / 2.0);
}

// One call: what choice takes, and what it could have taken.
struct Point {
  double chosen_seconds = 0;
  double best_seconds = std::numeric_limits<double>::infinity();
  std::string table;  // of all candidates: simulated and estimated

  [[nodiscard]] bool misses() const { return !(chosen_seconds <= kNearTheBest * best_seconds); }
};

Point point_of(const Question& question, const Place& place) {
  const Choice choice = choose(question, place.tiers, {}).value();
  Point point;
  for (const Candidate& candidate : choice.candidates) {
    if (!candidate.refused.empty()) continue;
    const double seconds = seconds_of(*candidate.algorithm, question, place);
    const bool chosen = candidate.algorithm == choice.algorithm;
    if (chosen) point.chosen_seconds = seconds;
    point.best_seconds = std::min(point.best_seconds, seconds);
    char text[128];
    std::snprintf(text, sizeof text, "  %s %-20s %12.2f us, estimated %12.2f us\n", chosen ? "*" : " ",
                  candidate.algorithm->name.data(), seconds * 1e6, candidate.estimate.seconds * 1e6);
    point.table += text;
  }
  return point;
}

class ChoiceInSimulation : public ::testing::TestWithParam<Collective> {};

TEST_P(ChoiceInSimulation, IsNearTheBest) {
  int points = 0;
  int misses = 0;
  std::uint64_t turn = 0;
  for (const Place& place : places())
    for (const std::uint64_t size : kSizes) {
      const std::uint64_t diagonal = turn + turn / std::size(kSizes);  // every place and every size takes part
      ++turn;
      if (diagonal % support::kEvery != 0) continue;
      Question question;
      question.collective = GetParam();
      question.ranks = place.tiers.ranks();
      question.crowding = place.crowding;
      const std::uint64_t parts = has_parts(question.collective) ? static_cast<std::uint64_t>(question.ranks) : 1;
      question.bytes = std::max(kElement, size / parts / kElement * kElement);
      const Point point = point_of(question, place);
      ++points;
      if (!point.misses()) continue;
      ++misses;
      std::printf("%s of %llu bytes, %s: %.2f times the best\n%s", name_of(question.collective).data(),
                  static_cast<unsigned long long>(size), place.name.c_str(), point.chosen_seconds / point.best_seconds,
                  point.table.c_str());
    }
  std::printf("%d of %d points are within %.2f of the best\n", points - misses, points, kNearTheBest);
  EXPECT_GE(points - misses, kShare * points);
}

INSTANTIATE_TEST_SUITE_P(Every, ChoiceInSimulation,
                         ::testing::Values(Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                           Collective::broadcast, Collective::reduce, Collective::all_to_all),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace seto
