#include "src/plan/first_encodings.h"

#include <algorithm>

namespace seto {
namespace {

bool encodes(const Program& program, const Step& step) {
  const auto is_coded = [&](const Operand& operand) {
    return operand.space == Space::channel && program.channels[operand.index].coded;
  };
  if (step.rounds) return true;
  const auto sources = program.sources(step);
  const auto targets = program.targets(step);
  const bool hands_on = sources.size() == 1 && is_coded(sources.front()) && !step.finishes;
  return !hands_on && std::any_of(targets.begin(), targets.end(), is_coded);
}

}  // namespace

std::vector<std::vector<bool>> first_encodings(const Program& program) {
  std::vector<bool> encoded;  // by chunk
  std::vector<std::vector<bool>> first;
  for (const Step& step : program.steps) {
    std::vector<bool>& of_step = first.emplace_back(step.count, false);
    if (!encodes(program, step)) continue;
    if (encoded.size() < step.chunk + step.count) encoded.resize(step.chunk + step.count);
    for (std::uint32_t i = 0; i < step.count; ++i) {
      of_step[i] = !encoded[step.chunk + i];
      encoded[step.chunk + i] = true;
    }
  }
  return first;
}

}  // namespace seto
