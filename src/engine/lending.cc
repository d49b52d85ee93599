#include "src/engine/lending.h"

#include "src/plan/chunk_map.h"

namespace seto {
namespace {

bool is_callers(const Operand& operand) { return operand.space == Space::input || operand.space == Space::output; }

}  // namespace

Lending::Lending(const Program& program, const Shape& shape, InPlace in_place)
    : program_(program), table_(shape, program.rank, in_place) {
  for (std::uint32_t i = 0; i < input_chunks(shape, program.rank); ++i) (void)table_.id(Space::input, i);
  inputs_ = table_.size();
  for (const Step& step : program.steps)
    for (const Operand& target : program.targets(step))
      for (std::uint32_t i = 0; target.space != Space::channel && i < step.count; ++i) {
        const std::uint32_t place = table_.id(target.space, target.index + i);
        if (place >= writes_.size()) writes_.resize(place + 1, 0);
        ++writes_[place];
      }
}

std::uint32_t Lending::writes(const Operand& place) {
  const std::uint32_t id = table_.id(place.space, place.index);
  return id < writes_.size() ? writes_[id] : 0;
}

bool Lending::holds_input(const Operand& place) { return table_.id(place.space, place.index) < inputs_; }

std::optional<Operand> Lending::place_of(const Step& step) {
  if (step.count != 1) return std::nullopt;  // several pieces of one message lie apart
  const Operand& source = program_.sources(step).front();
  const bool copies = step.source_count == 1 && !source.scaled && !step.finishes;
  // The place is read after its one write, or never written. Input that is written once may be read before that.
  if (copies && is_callers(source) && writes(source) <= (holds_input(source) ? 0U : 1U)) return source;
  for (const Operand& target : program_.targets(step))
    if (target.space == Space::output && writes(target) == 1) return target;
  return std::nullopt;
}

}  // namespace seto
