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
  for (std::uint32_t s = 0; s < program.steps.size(); ++s)
    for (const Operand& target : program.targets(program.steps[s]))
      for (std::uint32_t i = 0; target.space != Space::channel && i < program.steps[s].count; ++i) {
        const std::uint32_t place = table_.id(target.space, target.index + i);
        if (place >= writes_.size()) writes_.resize(place + 1);
        writes_[place] = {writes_[place].count + 1, s};
      }
}

Lending::Writes Lending::writes(const Operand& place) {
  const std::uint32_t id = table_.id(place.space, place.index);
  return id < writes_.size() ? writes_[id] : Writes{};
}

bool Lending::copies(const Step& step, const Operand& source) {
  return step.source_count == 1 && !source.scaled && !step.finishes && is_callers(source);
}

bool Lending::holds_input(const Operand& place) { return table_.id(place.space, place.index) < inputs_; }

std::optional<Operand> Lending::place_of(const Step& step) {
  if (step.count != 1) return std::nullopt;  // several pieces of one message lie apart
  const Operand& source = program_.sources(step).front();
  // The place is read after its one write, or never written. Input that is written once may be read before that.
  if (copies(step, source) && writes(source).count <= (holds_input(source) ? 0U : 1U)) return source;
  for (const Operand& target : program_.targets(step))
    if (target.space == Space::output && writes(target).count == 1) return target;
  return std::nullopt;
}

std::optional<Lending::Overwritten> Lending::overwritten(const Step& step) {
  const Operand& source = program_.sources(step).front();
  if (step.count != 1 || !copies(step, source) || !holds_input(source) || writes(source).count != 1) return std::nullopt;
  return Overwritten{source, writes(source).last};
}

}  // namespace seto
