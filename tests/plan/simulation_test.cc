// The links of the simulation: windows, shared up- and downlinks, codecs on the wire. The rest is in executors_test.cc.

#include <gtest/gtest.h>

#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/engine/simulation/simulated_engine.h"

namespace seto {
namespace {

constexpr double kRoundTripNs = 60e6;
constexpr double kBytesPerNs = 0.125;  // 1 Gbit/s
constexpr std::uint64_t kMegabyte = 1'000'000;

struct Case {
  std::string_view algorithm = "one_shot";
  Collective collective = Collective::all_reduce;
  Tiers tiers = Tiers::flat(2);
  std::uint64_t bytes = kMegabyte;
  std::uint64_t slice_bytes = kMegabyte;
  std::uint8_t codec = 0;
  double coded_share = 1;
};

Result<SimulatedOutcome> outcome_of(const Case& one, const SimulatedMachine& machine, SimulatedTrace* trace = nullptr) {
  const Algorithm& algorithm = *find_algorithm(one.algorithm, one.collective);
  Shape shape{one.collective, one.tiers.ranks(), 0, 1, Finish::none};
  shape.pieces = algorithm.pieces(shape, one.tiers);
  shape.codec = one.codec;
  if (one.codec != 0) shape.coded_tiers = static_cast<std::uint8_t>(1U << (one.tiers.count() - 1));
  Plan plan = build_plan(algorithm, shape, one.tiers, {});
  for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
  std::vector<Layout> layouts;
  for (Rank rank = 0; rank < shape.ranks; ++rank) layouts.push_back(Layout::uniform(shape, rank, one.bytes / 4, 16));
  SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = one.slice_bytes / 4, .depth = 64};
  run.order = StepOrder::readiness;
  run.coded_share = one.coded_share;
  run.trace = trace;
  return simulate(run);
}

double milliseconds_of(const Case& one, const SimulatedMachine& machine) {
  const Result<SimulatedOutcome> outcome = outcome_of(one, machine);
  EXPECT_TRUE(outcome.ok()) << outcome.status().text();
  return outcome.ok() ? outcome.value().longest_ns() * 1e-6 : 0;
}

// Ranks of sites with one uplink and one downlink each: shared links 2 s and 2 s + 1. Within a site everything is at once.
SimulatedMachine machine_of_sites(const std::vector<int>& site_of, double window_bytes = 0) {
  SimulatedMachine machine;
  const auto sites = static_cast<std::uint32_t>(site_of.back() + 1);
  machine.shared_bytes_per_ns.assign(std::size_t{2} * sites, kBytesPerNs);
  for (std::uint32_t from = 0; from < sites; ++from)
    for (std::uint32_t to = 0; to < sites; ++to) machine.shared_ways.push_back({2 * from, 2 * to + 1});
  machine.link = [=](Rank from, Rank to) {
    const auto left = static_cast<std::uint32_t>(site_of[static_cast<std::size_t>(from)]);
    const auto right = static_cast<std::uint32_t>(site_of[static_cast<std::size_t>(to)]);
    SimulatedLink link;
    link.wire = static_cast<std::uint32_t>(from);
    if (left == right) return link;
    link.latency_ns = kRoundTripNs / 2;
    link.shared_way = left * sites + right;
    link.window_bytes = window_bytes;
    return link;
  };
  return machine;
}

constexpr double kMillisecondsAMegabyte = 8;  // at 1 Gbit/s

TEST(SimulatedSites, AnExchangeTakesItsBytesAndHalfARoundTrip) {
  EXPECT_NEAR(milliseconds_of({}, machine_of_sites({0, 1})), kMillisecondsAMegabyte + 30, 1e-3);
}

TEST(SimulatedSites, DirectionsDoNotShare) {
  Case one;
  one.algorithm = "direct";
  one.collective = Collective::gather;  // only rank 1 sends
  EXPECT_NEAR(milliseconds_of(one, machine_of_sites({0, 1})), kMillisecondsAMegabyte + 30, 1e-3) << "as long as an exchange";
}

TEST(SimulatedSites, RanksOfASiteShareItsUplink) {
  // Two sites of four ranks: each rank exchanges a quarter of the buffer, all four over the one uplink.
  Case one;
  one.algorithm = "hierarchical";
  std::vector<Home> homes;
  for (std::uint32_t rank = 0; rank < 8; ++rank) homes.push_back({rank / 4, rank / 4});
  one.tiers = Tiers::of(homes);
  EXPECT_NEAR(milliseconds_of(one, machine_of_sites({0, 0, 0, 0, 1, 1, 1, 1})), kMillisecondsAMegabyte + 30, 0.01);
}

TEST(SimulatedSites, ADownlinkIsSharedByAllThatSendToIt) {
  // Rank 0 gathers from three sites over its downlink: 3 MB.
  Case one;
  one.algorithm = "direct";
  one.collective = Collective::gather;
  one.tiers = Tiers::flat(4);
  EXPECT_NEAR(milliseconds_of(one, machine_of_sites({0, 1, 2, 3})), 3 * kMillisecondsAMegabyte + 30, 1e-3);
}

TEST(SimulatedSites, TheSlowDirectionDecides) {
  SimulatedMachine machine = machine_of_sites({0, 1});
  machine.shared_bytes_per_ns[2] = kBytesPerNs / 4;  // the uplink of site 1
  EXPECT_NEAR(milliseconds_of({}, machine), 4 * kMillisecondsAMegabyte + 30, 1e-3);
}

TEST(SimulatedSites, WhatOneSocketCarriesLimitsAPair) {
  SimulatedMachine machine = machine_of_sites({0, 1});
  const auto fast = machine.link;
  machine.link = [=](Rank from, Rank to) {
    SimulatedLink link = fast(from, to);
    link.most_bytes_per_ns = kBytesPerNs / 2;
    return link;
  };
  EXPECT_NEAR(milliseconds_of({}, machine), 2 * kMillisecondsAMegabyte + 30, 1e-3);
}

TEST(SimulatedWindows, ALongMessageMovesAtWindowOverRoundTrip) {
  Case one;
  one.bytes = 100 * kMegabyte;
  const double window = 1e6;  // 16.7 MB/s at 60 ms, on a link of 125 MB/s
  const double expected_ms = 100e6 / window * kRoundTripNs * 1e-6;
  EXPECT_NEAR(milliseconds_of(one, machine_of_sites({0, 1}, window)) / expected_ms, 1, 0.05);
}

TEST(SimulatedWindows, AMessageThatFitsIsNotSlowed) {
  EXPECT_NEAR(milliseconds_of({}, machine_of_sites({0, 1}, 1e6)), kMillisecondsAMegabyte + 30, 1e-3);
}

TEST(SimulatedWindows, ALargeEnoughWindowFillsTheLink) {
  Case one;
  one.bytes = 100 * kMegabyte;
  const double filled_ms = 100 * kMillisecondsAMegabyte + 30;
  EXPECT_NEAR(milliseconds_of(one, machine_of_sites({0, 1}, 2 * kBytesPerNs * kRoundTripNs)) / filled_ms, 1, 0.01);
}

TEST(SimulatedWindows, HoldWithoutSharedLinksToo) {
  SimulatedMachine machine;
  machine.link = [](Rank from, Rank) {
    SimulatedLink link;
    link.latency_ns = kRoundTripNs / 2;
    link.ns_per_byte = 1 / kBytesPerNs;
    link.wire = static_cast<std::uint32_t>(from);
    link.window_bytes = 1e6;
    return link;
  };
  Case one;
  one.bytes = 100 * kMegabyte;
  EXPECT_NEAR(milliseconds_of(one, machine) / (100 * 60), 1, 0.05);
}

TEST(SimulatedCodecs, TakeTheirShareOfTheWireAndTheirTime) {
  Case one;
  one.codec = 1;
  one.coded_share = 0.5;
  SimulatedMachine machine = machine_of_sites({0, 1});
  EXPECT_NEAR(milliseconds_of(one, machine), kMillisecondsAMegabyte / 2 + 30, 1e-3);
  machine.code_ns_per_byte = 1;
  EXPECT_NEAR(milliseconds_of(one, machine), kMillisecondsAMegabyte / 2 + 30 + 3 * 1, 1e-3)
      << "the own vector is encoded and decoded, the other's is decoded";
}

TEST(SimulatedLoad, CountsBytesOfEachWireAndSharedLink) {
  const SimulatedOutcome outcome = outcome_of({}, machine_of_sites({0, 1})).value();
  for (const double bytes : outcome.bytes_by_shared_link) EXPECT_NEAR(bytes, 1e6, 1);
  EXPECT_NEAR(outcome.bytes_by_wire.at(0), 1e6, 1);
  EXPECT_NEAR(outcome.bytes_by_wire.at(1), 1e6, 1);
}

TEST(SimulatedTraces, ShowTheRanksThatAreAskedFor) {
  SimulatedTrace trace;
  trace.shows = [](Rank rank) { return rank == 1; };
  ASSERT_TRUE(outcome_of({}, machine_of_sites({0, 1}), &trace).ok());
  ASSERT_EQ(trace.messages.size(), 1U);
  EXPECT_EQ(trace.messages[0].sender, 0);
  EXPECT_NEAR(trace.messages[0].arrived_ns - trace.messages[0].sent_ns, 38e6, 1e3);
  ASSERT_FALSE(trace.steps.empty());
  for (const SimulatedEvent& event : trace.steps) EXPECT_EQ(event.rank, 1);
}

TEST(SimulatedSites, ASharedLinkWithoutARateIsRefused) {
  SimulatedMachine machine = machine_of_sites({0, 1});
  machine.shared_bytes_per_ns[0] = 0;
  EXPECT_NE(outcome_of({}, machine).status().text().find("rate above 0"), std::string_view::npos);
}

}  // namespace
}  // namespace seto
