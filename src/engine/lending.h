#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/plan/hazards.h"
#include "src/plan/plan.h"

namespace seto {

// Finds the messages of a lowered program that need no slot if the receiver can read the sender's memory: their content lies in
// the caller's buffers from the moment when it is sent until the operation ends. The sender then only waits at the end until
// everything was read. No other wait is added, so what the verifier proved about the program still holds.
class Lending final {
 public:
  Lending(const Program& program, const Shape& shape, InPlace in_place);

  // The place that holds the message of this step, if no later step writes to it.
  [[nodiscard]] std::optional<Operand> place_of(const Step& step);

  struct Overwritten {
    Operand place;
    std::uint32_t writer = 0;  // a step of the program
  };
  // The input that this step sends as it is, if exactly one step writes over it.
  [[nodiscard]] std::optional<Overwritten> overwritten(const Step& step);

 private:
  struct Writes {
    std::uint32_t count = 0;
    std::uint32_t last = 0;  // step
  };

  [[nodiscard]] static bool copies(const Step& step, const Operand& source);
  [[nodiscard]] Writes writes(const Operand& place);
  [[nodiscard]] bool holds_input(const Operand& place);

  const Program& program_;
  PlaceTable table_;
  std::uint32_t inputs_ = 0;    // places below it hold input when the operation begins
  std::vector<Writes> writes_;  // by place
};

}  // namespace seto
