#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/plan/hazards.h"
#include "src/plan/plan.h"

namespace seto {

// Which messages of a lowered program need no slot where the receiver can read the sender's memory: those whose content lies in
// the caller's buffers from the moment it is sent until the operation ends. The sender then only has to wait, at the end, until
// all was read; no other wait is added, so whatever the verifier proved of the program still holds.
class Lending final {
 public:
  Lending(const Program& program, const Shape& shape, InPlace in_place);

  // The place that holds what this step sends, if nothing writes it after.
  [[nodiscard]] std::optional<Operand> place_of(const Step& step);

 private:
  [[nodiscard]] std::uint32_t writes(const Operand& place);
  [[nodiscard]] bool holds_input(const Operand& place);

  const Program& program_;
  PlaceTable table_;
  std::uint32_t inputs_ = 0;           // places below it hold input when the operation begins
  std::vector<std::uint32_t> writes_;  // steps that write it, by place
};

}  // namespace seto
