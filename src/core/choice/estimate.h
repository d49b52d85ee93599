#pragma once

#include <array>
#include <cstdint>

#include "algorithms/cost_form.h"
#include "src/core/choice/cost_model.h"
#include "src/topology/tiers.h"

namespace seto {

// The values besides its load and the constants on which the time of a plan depends.
struct Workload {
  double part_bytes = 0;
  double slices = 1;             // number of slices of the longest chunk
  double crowding = 1;           // ranks for each core
  std::uint8_t coded_tiers = 0;  // bit t: messages of tier t are coded
  double wire_share = 1;         // bytes of a coded message for each byte of its numbers
};

struct TierEstimate {
  double hops = 0;
  double wire_bytes = 0;       // over the busiest port of a rank, or over the busiest link that the ranks of a site share
  double latency_seconds = 0;  // sum over all hops
  double wire_seconds = 0;     // none within a node: there the bytes move through memory
  double messages = 0;         // of all slices, sent and received by the busiest rank
  double message_seconds = 0;  // of the processor, beyond the messages of the hops
};

struct Estimate {
  std::array<TierEstimate, kMostTiers> tiers;
  double memory_bytes = 0;
  double memory_seconds = 0;  // encoding and decoding included
  double step_seconds = 0;    // the cost of steps besides their bytes
  double seconds = 0;         // of the whole call
};

// Combines the load of a plan with the constants of the tiers. Pure.
Estimate estimate_of(const PlanLoad& load, const Tiers& tiers, const Workload& work, const CostModel& model);

}  // namespace seto
