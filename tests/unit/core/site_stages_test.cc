// The stages of hierarchical plans overlap: the links of the busiest site are in use all the time, in simulated calls of 100 MB.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "src/core/choice/planner.h"
#include "src/engine/lowering.h"
#include "src/engine/simulation/simulated_engine.h"

namespace seto {
namespace {

constexpr double kOneWaySeconds = 30e-3;
constexpr double kMbit = 1e6 / 8;
constexpr std::uint64_t kBytes = 100'000'000;
constexpr std::uint64_t kElement = 4;

// Sites by the ranks of each of their hosts, and the rate of their links in Mbit/s.
struct Site {
  std::vector<int> hosts;
  double mbit;
};

Sites sites_of(const std::vector<Site>& all, std::vector<Home>& homes) {
  Sites sites;
  sites.stated = true;
  sites.links = SiteLinks(static_cast<std::uint32_t>(all.size()));
  std::uint32_t node = 0;
  for (std::uint32_t site = 0; site < all.size(); ++site) {
    sites.rates.push_back({all[site].mbit * kMbit, all[site].mbit * kMbit});
    for (const int ranks : all[site].hosts) homes.insert(homes.end(), static_cast<std::size_t>(ranks), Home{node++, site});
    for (std::uint32_t other = 0; other < all.size(); ++other)
      if (other != site)
        sites.links.add({0,
                         site,
                         other,
                         {.medium = LinkMedium::wide_area, .round_trip_s = 2 * kOneWaySeconds, .source = FactSource::measured}});
  }
  return sites;
}

// Ranks of a node pass bytes through memory. Hosts of a site have ports of 10 Gbit/s, and sites an up- and a downlink.
SimulatedMachine machine_of(const Tiers& tiers, const CostModel& model) {
  SimulatedMachine machine;
  machine.step_ns = 22;
  machine.pass_ns_per_byte = 1e9 / (2 * model.node.bytes_per_second);
  const auto sites = static_cast<std::uint32_t>(tiers.rates().size());
  for (const PortRates& rates : tiers.rates()) {
    machine.shared_bytes_per_ns.push_back(rates.up * 1e-9);
    machine.shared_bytes_per_ns.push_back(rates.down * 1e-9);
  }
  for (std::uint32_t from = 0; from < sites; ++from)
    for (std::uint32_t to = 0; to < sites; ++to) machine.shared_ways.push_back({2 * from, 2 * to + 1});
  machine.link = [&tiers, sites](Rank from, Rank to) {
    SimulatedLink link{10e3, 0.8, static_cast<std::uint32_t>(2 * from), static_cast<std::uint32_t>(2 * to + 1)};
    const TierKind kind = tiers.kind(tiers.between(from, to));
    if (kind == TierKind::node) link = {250, 0, link.wire, link.far_wire};
    if (kind != TierKind::world) return link;
    const auto site_of = [&](Rank rank) { return static_cast<std::uint32_t>(tiers.member_of(rank)); };
    link.latency_ns = kOneWaySeconds * 1e9;
    link.shared_way = site_of(from) * sites + site_of(to);
    return link;
  };
  return machine;
}

// The share of the time in which the busiest link of a site is in use.
double use_of_busiest_link(Collective collective, std::string_view pin, const std::vector<Site>& all) {
  std::vector<Home> homes;
  const Sites sites = sites_of(all, homes);
  Tiers tiers = Tiers::of(homes);
  tiers.take_rates(sites.rates);
  CostModel model;
  model.source = CostSource::measured;
  model.use(sites);
  Question question;
  question.collective = collective;
  question.ranks = tiers.ranks();
  question.bytes = kBytes / (has_parts(collective) ? static_cast<std::uint64_t>(tiers.ranks()) : 1);
  question.pin = pin;
  const Choice choice = choose(question, tiers, model).value();
  EXPECT_EQ(choice.algorithm->name, pin);
  Shape shape{collective, tiers.ranks(), 0, 1, Finish::none};
  shape.pieces = choice.algorithm->pieces(shape, tiers);
  Plan plan = build_plan(*choice.algorithm, shape, tiers, {});
  std::vector<Layout> layouts;
  for (Program& program : plan.programs) {
    program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
    layouts.push_back(Layout::uniform(shape, program.rank, question.bytes / kElement, 16));
  }
  const SimulatedMachine machine = machine_of(tiers, model);
  SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = choice.cut.slice_bytes / kElement};
  run.order = choice.cut.order;
  run.depth = static_cast<std::uint32_t>(std::max<std::uint64_t>(2, choice.cut.window_bytes / choice.cut.slice_bytes));
  const Result<SimulatedOutcome> outcome = simulate(run);
  EXPECT_TRUE(outcome.ok()) << outcome.status().text();
  double busy_ns = 0;
  for (std::size_t link = 0; link < machine.shared_bytes_per_ns.size(); ++link)
    busy_ns = std::max(busy_ns, outcome.value().bytes_by_shared_link[link] / machine.shared_bytes_per_ns[link]);
  const double longest_ns = outcome.value().longest_ns();
  std::printf("%s %s over %zu sites, %d ranks: %.2f s, the busiest link is in use for %.1f %%\n", pin.data(),
              name_of(collective).data(), all.size(), tiers.ranks(), longest_ns * 1e-9, 100 * busy_ns / longest_ns);
  return busy_ns / longest_ns;
}

const std::vector<Site> kThree = {{{1}, 250}, {{1}, 500}, {{1}, 1000}};
const std::vector<Site> kUneven = {{{2, 1}, 250}, {{2}, 500}, {{2, 2, 1}, 1000}};

// The rest of the time is the way of the first and the last slices, and in an all_reduce they pass the slowest link twice. Nine
// pairs of ranks share it in kUneven: with slices of 512 KiB it would be in use for 0.87 of the time.
TEST(SiteStages, KeepTheBusiestLinkInUse) {
  EXPECT_GE(use_of_busiest_link(Collective::all_reduce, "hierarchical", kThree), 0.9);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    EXPECT_GE(use_of_busiest_link(collective, "hierarchical", kUneven), 0.9) << name_of(collective);
  for (const Collective collective : {Collective::broadcast, Collective::reduce})
    EXPECT_GE(use_of_busiest_link(collective, "spread", kUneven), 0.9) << name_of(collective);
}

}  // namespace
}  // namespace seto
