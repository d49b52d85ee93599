#pragma once

#include <cstdint>

#include "src/plan/step_order.h"
#include "src/topology/link_facts.h"

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

// Pure. `memory_limit` bounds the window.
Flow flow_of(const LinkFacts& link, std::uint64_t memory_limit);

}  // namespace seto
