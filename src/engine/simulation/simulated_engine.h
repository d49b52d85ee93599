#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/plan/layout.h"
#include "src/plan/plan.h"
#include "src/plan/verify.h"

namespace seto {

inline constexpr std::uint32_t kNoWire = 0xffffffff;

// The connection from one rank to another. Links that name the same wire share its bandwidth, in the order of posting.
// Links that name the same `far_wire`, such as the receiver's port, share it in the order of arrival: the first byte of a message
// arrives one latency after it was sent. See README.md for the whole model.
struct SimulatedLink {
  double latency_ns = 0;
  double ns_per_byte = 0;
  std::uint32_t wire = 0;
  std::uint32_t far_wire = kNoWire;
  std::uint32_t shared_way = kNoWire;  // in SimulatedMachine::shared_ways
  double most_bytes_per_ns = 0;        // what one pair of ranks can reach on shared links; 0: as much as its wires
  double window_bytes = 0;             // most bytes of the pair that are sent and not acknowledged; 0: no limit
  double message_ns = 0;               // of the worker at each end, for each message; not contained in the latency
  bool written_once = false;           // one message serves all receivers of a channel over such links
};

struct SimulatedMachine {
  std::function<SimulatedLink(Rank from, Rank to)> link;
  double step_ns = 0;             // for every step and slice
  double copy_ns_per_byte = 0;    // for each target of a step, memory or slot
  double reduce_ns_per_byte = 0;  // for each source that is folded to another
  double pass_ns_per_byte = 0;    // for each source and each target of a step: bytes that pass through memory
  double code_ns_per_byte = 0;    // for each encoding or decoding
  // Ranks of one node share its cores; a step holds one while it runs. Empty: a core for each rank.
  std::vector<std::uint32_t> node_of;
  std::uint32_t cores_per_node = 1;
  // Links that all flows over them share max-min fairly, and the ways of flows over them, as indices of these links.
  std::vector<double> shared_bytes_per_ns;
  std::vector<std::vector<std::uint32_t>> shared_ways;
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

struct SimulatedMessage {  // one slice of a channel on its way to one receiver
  Rank sender = 0;
  Rank receiver = 0;
  std::uint32_t step = 0;  // of the receiver, which reads it
  std::uint64_t slice = 0;
  double sent_ns = 0;
  double arrived_ns = 0;

  friend bool operator==(const SimulatedMessage&, const SimulatedMessage&) = default;
};

// A record of a run. Only ranks for which `shows` holds are recorded; empty: all of them.
struct SimulatedTrace {
  std::function<bool(Rank)> shows;
  std::vector<SimulatedEvent> steps;       // in the order of their ends
  std::vector<SimulatedMessage> messages;  // to these ranks, in the order of their arrivals
};

struct SimulatedRun {
  const Plan& plan;                 // all ranks' programs; only the times of lowered ones are those of an executor
  std::span<const Layout> layouts;  // by rank
  const SimulatedMachine& machine;
  std::uint32_t element_size = 4;
  double coded_share = 1;               // bytes on the wire of a coded message for each byte of its numbers
  std::uint64_t slice_length = 1;       // elements
  std::uint32_t depth = 2;              // slots of each channel
  StepOrder order = StepOrder::skewed;  // skewed only for lowered programs: lanes of several steps may mix stages
  SimulatedTrace* trace = nullptr;      // null: not kept
};

struct SimulatedChannel {
  Rank sender = 0;
  std::vector<Rank> receivers;
  std::uint64_t bytes = 0;  // sent to each receiver
};

struct SimulatedOutcome {
  std::vector<double> finish_ns;  // by rank
  std::vector<SimulatedChannel> channels;
  std::map<std::uint32_t, double> bytes_by_wire;  // on the wire, as sender or as receiver
  std::vector<double> bytes_by_shared_link;

  [[nodiscard]] double longest_ns() const;
};

// Runs a plan in virtual time, as the host executor does, but without bytes. One worker for each rank takes steps in the order
// of the request, a message arrives when its wires and shared links have carried it, and its slot is free again one latency after
// it was read. Equal requests give equal outcomes. A plan that gets stuck is a failure that names a rank, its step and what it
// waits for.
Result<SimulatedOutcome> simulate(const SimulatedRun& run);

}  // namespace seto
