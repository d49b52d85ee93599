#pragma once

#include <cstdint>

#include "src/core/choice/cost_model.h"
#include "src/plan/step_order.h"
#include "src/topology/link_facts.h"
#include "src/topology/tiers.h"

namespace seto {

// The parameters of sending over a link.
struct Flow {
  std::uint64_t window_bytes = 0;  // most bytes under way in a stream
  std::uint32_t sockets = 1;
  std::uint64_t slice_bytes = 0;  // bytes of the largest slice on the wire
  StepOrder order = StepOrder::skewed;
};

// Bytes of a slice on the wire of a link whose rate and round trip are known.
std::uint64_t slice_of(double bytes_per_second, double round_trip_s);

// Pure. `memory_limit` bounds the window. Without a rate of the link, the sockets are those of a far link or of a near one.
Flow flow_of(const LinkFacts& link, std::uint64_t memory_limit);

// The sockets between two ranks of that tier, as connections open them: before any traffic was measured, so that only a stated
// rate counts. The ranks of a site share its link, where sites are stated; else the ranks of a host do.
std::uint32_t sockets_on(TierKind kind, const Tiers& tiers, const CostModel& model);
// The bytes per second that two ranks of different sites can send over them. 0: what a socket carries is not stated.
double most_of_a_pair(const Tiers& tiers, const CostModel& model);

}  // namespace seto
