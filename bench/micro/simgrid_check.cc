// Runs the same plans over the same links in our simulation and in SimGrid, and compares the times. Built where SimGrid is
// installed (Debian: libsimgrid-dev). Computation takes no time in both, so only the models of the network are compared.
//
//   simgrid_check      prints a line for each case; the exit status is 0 if all differences are within their goals

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/engine/simulation/simulated_engine.h"
#include "src/plan/channel_index.h"

namespace {

using namespace seto;
namespace sg = simgrid::s4u;

constexpr double kUncontended = 0.10, kContended = 0.25;  // goals

// Ranks with a port of their own, in sites with an uplink and a downlink. Rates in bytes a second.
struct System {
  std::vector<int> site_of;
  double port = 1.25e9;
  double near_latency_s = 10e-6;
  double far_latency_s = 30e-3;
  std::vector<double> uplinks;  // of each site, and its downlink; empty: one site

  [[nodiscard]] int ranks() const { return static_cast<int>(site_of.size()); }
  [[nodiscard]] bool far(int a, int b) const {
    return site_of[static_cast<std::size_t>(a)] != site_of[static_cast<std::size_t>(b)];
  }
};

struct Case {
  const char* name;
  const char* algorithm;
  Collective collective;
  System system;
  std::uint64_t bytes;
  bool contended;
};

std::vector<Case> cases() {
  const System pair{{0, 1}, 1.25e9, 10e-6, 30e-3, {125e6, 125e6}};
  const System lan{{0, 0, 0, 0}, 1.25e9, 10e-6, 0, {}};
  const System two{{0, 0, 0, 0, 1, 1, 1, 1}, 1.25e9, 10e-6, 30e-3, {125e6, 125e6}};
  const System uneven{{0, 0, 1, 1, 2, 2}, 1.25e9, 10e-6, 30e-3, {31.25e6, 62.5e6, 125e6}};
  return {{"exchange of two sites, 1 MB", "one_shot", Collective::all_reduce, pair, 1'000'000, false},
          {"exchange of two sites, 100 MB", "one_shot", Collective::all_reduce, pair, 100'000'000, false},
          {"broadcast to another site, 10 MB", "direct", Collective::broadcast, pair, 10'000'000, false},
          {"ring of 4 in a site, 16 MB", "ring", Collective::all_reduce, lan, 16'000'000, false},
          {"direct all_gather of 4, 4 MB each", "direct", Collective::all_gather, lan, 4'000'000, true},
          {"gather to one port, 4 MB each", "direct", Collective::gather, lan, 4'000'000, true},
          {"two sites of 4, hierarchical, 100 MB", "hierarchical", Collective::all_reduce, two, 100'000'000, true},
          {"two sites of 4, ring, 100 MB", "ring", Collective::all_reduce, two, 100'000'000, true},
          {"two sites of 4, direct all_to_all, 1 MB each", "direct", Collective::all_to_all, two, 1'000'000, true},
          {"sites 1 : 2 : 4, direct all_to_all, 1 MB each", "direct", Collective::all_to_all, uneven, 1'000'000, true},
          {"sites 1 : 2 : 4, direct all_gather, 1 MB each", "direct", Collective::all_gather, uneven, 1'000'000, true}};
}

Plan plan_of(const Case& one) {
  std::vector<Home> homes;
  for (int rank = 0; rank < one.system.ranks(); ++rank) {
    const auto site = static_cast<std::uint32_t>(one.system.site_of[static_cast<std::size_t>(rank)]);
    homes.push_back({static_cast<std::uint32_t>(rank), site});
  }
  const Tiers tiers = Tiers::of(homes);
  const Algorithm& algorithm = *find_algorithm(one.algorithm, one.collective);
  Shape shape{one.collective, one.system.ranks(), 0, 1, Finish::none};
  shape.pieces = algorithm.pieces(shape, tiers);
  Plan plan = build_plan(algorithm, shape, tiers, {});
  for (Program& program : plan.programs) program = lower(program, shape, InPlace::no, {LoweringRules::Chains::fold});
  return plan;
}

std::vector<Layout> layouts_of(const Case& one, const Plan& plan) {
  std::vector<Layout> layouts;
  for (Rank rank = 0; rank < one.system.ranks(); ++rank)
    layouts.push_back(Layout::uniform(plan.shape, rank, one.bytes / sizeof(float), 16));
  return layouts;
}

// ---- ours ----

double ours(const Case& one, const Plan& plan) {
  const System& system = one.system;
  SimulatedMachine machine;
  const auto sites = static_cast<std::uint32_t>(system.uplinks.size());
  for (const double rate : system.uplinks) machine.shared_bytes_per_ns.insert(machine.shared_bytes_per_ns.end(), 2, rate * 1e-9);
  for (std::uint32_t from = 0; from < sites; ++from)
    for (std::uint32_t to = 0; to < sites; ++to) machine.shared_ways.push_back({2 * from, 2 * to + 1});
  machine.link = [&](Rank from, Rank to) {
    SimulatedLink link;
    link.wire = static_cast<std::uint32_t>(2 * from);
    link.far_wire = static_cast<std::uint32_t>(2 * to + 1);
    link.ns_per_byte = 1e9 / system.port;
    link.latency_ns = (system.far(from, to) ? system.far_latency_s : system.near_latency_s) * 1e9;
    if (system.far(from, to))
      link.shared_way = static_cast<std::uint32_t>(system.site_of[static_cast<std::size_t>(from)]) * sites +
                        static_cast<std::uint32_t>(system.site_of[static_cast<std::size_t>(to)]);
    return link;
  };
  const std::vector<Layout> layouts = layouts_of(one, plan);
  SimulatedRun run{.plan = plan, .layouts = layouts, .machine = machine, .slice_length = std::uint64_t{1} << 40, .depth = 64};
  run.order = StepOrder::readiness;
  return simulate(run).value().longest_ns() * 1e-9;
}

// ---- SimGrid ----

void make_platform(const System& system) {
  auto* const zone = sg::create_full_zone("world");
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> out, in, up, down;
  const auto link = [&](const std::string& name, double rate) { return zone->create_link(name, rate)->set_latency(0)->seal(); };
  for (int rank = 0; rank < system.ranks(); ++rank) {
    hosts.push_back(zone->create_host("rank" + std::to_string(rank), 1e9));
    out.push_back(link("out" + std::to_string(rank), system.port));
    in.push_back(link("in" + std::to_string(rank), system.port));
  }
  for (std::size_t site = 0; site < system.uplinks.size(); ++site) {
    up.push_back(link("up" + std::to_string(site), system.uplinks[site]));
    down.push_back(link("down" + std::to_string(site), system.uplinks[site]));
  }
  for (int from = 0; from < system.ranks(); ++from)
    for (int to = 0; to < system.ranks(); ++to) {
      if (from == to) continue;
      const std::string name = "delay" + std::to_string(from) + "-" + std::to_string(to);
      const double latency = system.far(from, to) ? system.far_latency_s : system.near_latency_s;
      std::vector<sg::LinkInRoute> route{sg::LinkInRoute(out[static_cast<std::size_t>(from)])};
      if (system.far(from, to)) {
        route.emplace_back(up[static_cast<std::size_t>(system.site_of[static_cast<std::size_t>(from)])]);
        route.emplace_back(down[static_cast<std::size_t>(system.site_of[static_cast<std::size_t>(to)])]);
      }
      route.emplace_back(zone->create_link(name, 1e15)->set_latency(latency)->seal());
      route.emplace_back(in[static_cast<std::size_t>(to)]);
      zone->add_route(hosts[static_cast<std::size_t>(from)]->get_netpoint(), hosts[static_cast<std::size_t>(to)]->get_netpoint(),
                      nullptr, nullptr, route, false);
    }
  zone->seal();
}

// The messages of a plan that have arrived: one semaphore for each channel and receiver.
class Arrivals final {
 public:
  Arrivals(const ChannelIndex& index, int ranks) : index_(index), ranks_(static_cast<std::size_t>(ranks)) {
    for (std::size_t i = 0; i < index.channels.size() * ranks_; ++i) arrived_.push_back(sg::Semaphore::create(0));
  }
  [[nodiscard]] sg::SemaphorePtr of(Rank rank, std::uint32_t channel, Rank receiver) const {
    const std::size_t joined = index_.of_program[static_cast<std::size_t>(rank)][channel];
    return arrived_[joined * ranks_ + static_cast<std::size_t>(receiver)];
  }

 private:
  const ChannelIndex& index_;
  std::size_t ranks_;
  std::vector<sg::SemaphorePtr> arrived_;
};

sg::Host* host_of(Rank rank) { return sg::Engine::get_instance()->host_by_name("rank" + std::to_string(rank)); }

// One rank takes its steps in the order of their stages. Each message is carried by an actor of its own, so the rank does not
// wait for it.
void run_rank(const Program& program, const Arrivals& arrivals, const Layout& layout) {
  for (const Lane& lane : program.lanes)
    for (const Step& step : program.steps_of(lane)) {
      for (const Operand& source : program.sources(step))
        if (source.space == Space::channel) arrivals.of(program.rank, source.index, program.rank)->acquire();
      std::uint64_t bytes = 0;
      for (std::uint32_t i = 0; i < step.count; ++i) bytes += layout.length(step.chunk + i) * sizeof(float);
      for (const Operand& target : program.targets(step)) {
        if (target.space != Space::channel) continue;
        for (const Rank receiver : program.receivers_of(program.channels[target.index])) {
          const sg::SemaphorePtr arrived = arrivals.of(program.rank, target.index, receiver);
          sg::Actor::create("message", host_of(program.rank), [=, from = program.rank] {
            sg::Comm::sendto(host_of(from), host_of(receiver), bytes);
            arrived->release();
          });
        }
      }
    }
}

// SimGrid has one engine for each process.
double by_simgrid(const Case& one, const Plan& plan, sg::Engine& engine) {
  make_platform(one.system);
  const ChannelIndex index = join_channels(plan).value();
  const std::vector<Layout> layouts = layouts_of(one, plan);
  const Arrivals arrivals(index, one.system.ranks());
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank)
    sg::Actor::create("rank", host_of(static_cast<Rank>(rank)),
                      [&, rank] { run_rank(plan.programs[rank], arrivals, layouts[rank]); });
  engine.run();
  return sg::Engine::get_clock();
}

int check(const Case& one, sg::Engine& engine) {
  const Plan plan = plan_of(one);
  const double mine = ours(one, plan);
  const double theirs = by_simgrid(one, plan, engine);
  const double difference = mine / theirs - 1;
  const double goal = one.contended ? kContended : kUncontended;
  const bool met = std::fabs(difference) <= goal;
  std::printf("%-48s %10.2f ms %10.2f ms %+7.1f %%  goal %2.0f %%  %s\n", one.name, mine * 1e3, theirs * 1e3, 100 * difference,
              100 * goal, met ? "met" : "missed");
  return met ? 0 : 1;
}

}  // namespace

// simgrid_check N runs case N alone; without an argument the program runs itself once for each case.
int main(int count, char** words) {
  const std::vector<Case> all = cases();
  if (count > 1) {
    const auto number = static_cast<std::size_t>(std::atoi(words[1]));
    sg::Engine engine(&count, words);
    engine.set_config("network/model:CM02");
    engine.set_config("network/TCP-gamma:0");
    engine.set_config("network/crosstraffic:0");
    return number < all.size() ? check(all[number], engine) : 2;
  }
  std::printf("%-48s %13s %13s %9s\n", "case", "ours", "SimGrid", "difference");
  std::fflush(stdout);
  int status = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::system((std::string(words[0]) + " " + std::to_string(i) + " 2>/dev/null").c_str()) != 0) status = 1;
  return status;
}
