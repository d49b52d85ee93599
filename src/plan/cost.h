#pragma once

#include <cstdint>

#include "src/plan/plan.h"

namespace seto {

// What a step does, in chunks: choice and simulation price it, each with its own machine.
struct StepCost {
  std::uint32_t read = 0;       // from the rank's own memory
  std::uint32_t written = 0;    // to it
  std::uint32_t received = 0;   // read out of messages
  std::uint32_t sent = 0;       // written into messages: once, however many receivers a channel has
  std::uint32_t delivered = 0;  // sent, times receivers: what links carry where the medium has no multicast
  std::uint32_t folded = 0;     // combined with the operation: sources - 1
  std::uint32_t scaled = 0;     // multiplied by the rank's scalar, or divided at the finish
  std::uint32_t coded = 0;      // encoded or decoded

  StepCost& operator+=(const StepCost& other);
  friend bool operator==(const StepCost&, const StepCost&) = default;
};

StepCost cost_of(const Program& program, const Step& step);
StepCost cost_of(const Program& program);  // of all its steps

}  // namespace seto
