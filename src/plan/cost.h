#pragma once

#include <cstdint>

#include "src/plan/plan.h"

namespace seto {

// The work of a step, in chunks. The choice and the simulation turn it into time, each with its own constants.
struct StepCost {
  std::uint32_t read = 0;       // read from the rank's own memory
  std::uint32_t written = 0;    // written to the rank's own memory
  std::uint32_t received = 0;   // read from messages
  std::uint32_t sent = 0;       // written into messages, once for all receivers of a channel
  std::uint32_t delivered = 0;  // sent times receivers, for media without multicast
  std::uint32_t folded = 0;     // combined with the operation (sources - 1)
  std::uint32_t scaled = 0;     // multiplied by the rank's scalar, or divided at the finish
  std::uint32_t coded = 0;      // encoded or decoded

  StepCost& operator+=(const StepCost& other);
  friend bool operator==(const StepCost&, const StepCost&) = default;
};

StepCost cost_of(const Program& program, const Step& step);
StepCost cost_of(const Program& program);  // the sum over all its steps

}  // namespace seto
