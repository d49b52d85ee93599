#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/plan/layout.h"
#include "src/plan/plan.h"
#include "src/plan/verify.h"

namespace seto {

// What carries messages from one rank to another. Links that name the same wire share its bandwidth, in the order of posting.
struct SimulatedLink {
  double latency_ns = 0;
  double ns_per_byte = 0;
  std::uint32_t wire = 0;
};

struct SimulatedMachine {
  std::function<SimulatedLink(Rank from, Rank to)> link;
  double step_ns = 0;             // of every step and slice
  double copy_ns_per_byte = 0;    // for each target of a step, memory or slot
  double reduce_ns_per_byte = 0;  // for each source that is folded to another
  // Ranks of one node share its cores; a step holds one while it runs. Empty: a core for each rank.
  std::vector<std::uint32_t> node_of;
  std::uint32_t cores_per_node = 1;
};

// Every pair of ranks has its own wire, all alike.
std::function<SimulatedLink(Rank, Rank)> uniform_links(int ranks, double latency_ns, double ns_per_byte);

struct SimulatedEvent {  // one step of one slice
  Rank rank = 0;
  std::uint32_t step = 0;  // in Program::steps
  std::uint64_t slice = 0;
  double begin_ns = 0;
  double end_ns = 0;

  friend bool operator==(const SimulatedEvent&, const SimulatedEvent&) = default;
};

struct SimulatedRun {
  const Plan& plan;                 // all ranks' programs; lowered ones, where the times are to mean something
  std::span<const Layout> layouts;  // by rank
  const SimulatedMachine& machine;
  std::uint32_t element_size = 4;
  std::uint64_t slice_length = 1;                // elements
  std::uint32_t depth = 2;                       // slots of each channel
  StepOrder order = StepOrder::skewed;           // skewed only for lowered programs: lanes of several steps may mix stages
  std::vector<SimulatedEvent>* trace = nullptr;  // in the order of their ends; null: not kept
};

struct SimulatedChannel {
  Rank sender = 0;
  std::vector<Rank> receivers;
  std::uint64_t bytes = 0;  // to each receiver
};

struct SimulatedOutcome {
  std::vector<double> finish_ns;  // by rank
  std::vector<SimulatedChannel> channels;

  [[nodiscard]] double longest_ns() const;
};

// Runs a plan in virtual time: what the host engine does with it, without bytes. One worker a rank takes steps in the order
// asked for, a message arrives when its wire has carried it, and its slot is free again one latency after it was read.
// Equal requests give equal outcomes. A plan that gets stuck is a failure that names a rank, its step and what it waits for.
Result<SimulatedOutcome> simulate(const SimulatedRun& run);

}  // namespace seto
