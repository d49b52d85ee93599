// One slice for all stages of a call (decision 28): a call is about as fast with the slice of choice as with any other, and with
// slices whose steps and messages cost nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "src/report/explain.h"
#include "src/report/graph_facts.h"
#include "src/report/simulation.h"

namespace seto {
namespace {

constexpr double kGigabit = 125e6;

struct Place {
  std::size_t sites = 2;
  std::size_t hosts = 2;  // of each site
  int ranks = 8;
  double uplink = kGigabit;
  double fabric = 10 * kGigabit;
};

GraphFacts facts_of(const Place& place) {
  TopologyGraph graph;
  graph.sites.resize(place.sites);
  for (std::size_t site = 0; site < place.sites; ++site) {
    graph.sites[site].fabric.bytes_per_second = place.fabric;
    graph.sites[site].fabric.round_trip_s = 50e-6;
    graph.sites[site].uplink.bytes_per_second = graph.sites[site].downlink.bytes_per_second = place.uplink;
    for (std::size_t host = 0; host < place.hosts; ++host) graph.hosts.emplace_back().site = site;
    for (std::size_t other = 0; other < place.sites; ++other)
      if (other != site) graph.between(site, other).round_trip_s = 60e-3;
  }
  return facts_of_graph(graph, place.ranks, {}).value();
}

// The simulated seconds of an all_reduce; `slice`: 0 for that of choice. `free`: neither steps nor messages cost anything.
double seconds_of(const GraphFacts& facts, std::uint64_t bytes, std::uint64_t slice, bool free) {
  Question question;
  question.ranks = facts.tiers.ranks();
  question = of_size(question, bytes, "", facts.tiers, facts.costs).value();
  Choice choice = choose(question, facts.tiers, facts.costs).value();
  if (slice != 0) choice.cut.slice_bytes = slice;
  SimulationModel model = model_of(facts);
  if (free) {
    model.machine.step_ns = 0;
    model.machine.link = [link_of = model.machine.link](Rank from, Rank to) {
      SimulatedLink link = link_of(from, to);
      link.latency_ns += 2 * link.message_ns;
      link.message_ns = 0;
      return link;
    };
  }
  const Result<Simulation> simulation = simulate_choice(question, choice, model);
  EXPECT_TRUE(simulation.ok()) << simulation.status().text();
  return simulation.ok() ? simulation.value().seconds : 0;
}

TEST(Slices, OfTheirOwnWouldEarnTheStagesNothing) {
  constexpr std::uint64_t kOthers[] = {128 << 10, 512 << 10, 2 << 20};
  const std::vector<Place> places = {{}, {.fabric = kGigabit}, {.hosts = 1, .ranks = 16}, {.sites = 3, .ranks = 12}};
  for (const Place& place : places)
    for (const std::uint64_t bytes : {std::uint64_t{4 << 20}, std::uint64_t{64 << 20}}) {
      const GraphFacts facts = facts_of(place);
      const double chosen = seconds_of(facts, bytes, 0, false);
      const double bound = seconds_of(facts, bytes, 32 << 10, true);
      double best = chosen;
      for (const std::uint64_t slice : kOthers) best = std::min(best, seconds_of(facts, bytes, slice, false));
      std::printf("%zu sites, %d ranks, %3llu MiB: %.1f ms, best of other slices %.1f, without their costs %.1f\n", place.sites,
                  place.ranks, static_cast<unsigned long long>(bytes >> 20), chosen * 1e3, best * 1e3, bound * 1e3);
      EXPECT_LE(chosen, 1.03 * bound);
      EXPECT_LE(chosen, 1.03 * best);
    }
}

}  // namespace
}  // namespace seto
