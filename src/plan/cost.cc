#include "src/plan/cost.h"

#include <algorithm>
#include <span>

namespace seto {

StepCost& StepCost::operator+=(const StepCost& other) {
  read += other.read;
  written += other.written;
  received += other.received;
  sent += other.sent;
  delivered += other.delivered;
  folded += other.folded;
  scaled += other.scaled;
  coded += other.coded;
  return *this;
}

namespace {

// Counts a decoding for each coded source, and one encoding for all coded targets. If the value is rounded, it is decoded again
// for this rank. Bytes that are only forwarded are decoded for places alone.
std::uint32_t times_coded(const Program& program, const Step& step) {
  const auto coded = [&](const Operand& operand) {
    return operand.space == Space::channel && program.channels[operand.index].coded;
  };
  const auto count = [&](std::span<const Operand> operands) {
    return static_cast<std::uint32_t>(std::count_if(operands.begin(), operands.end(), coded));
  };
  const bool rounds = step.verb == Verb::round || step.rounds;
  const std::uint32_t decoded = count(program.sources(step));
  const std::uint32_t encoded = count(program.targets(step));
  if (step.source_count == 1 && decoded == 1 && !rounds && !step.finishes) return step.target_count - encoded;
  return decoded + (encoded > 0 || rounds ? 1 : 0) + (rounds ? 1 : 0);
}

}  // namespace

StepCost cost_of(const Program& program, const Step& step) {
  StepCost cost;
  for (const Operand& source : program.sources(step)) {
    (source.space == Space::channel ? cost.received : cost.read) += step.count;
    if (source.scaled) cost.scaled += step.count;
  }
  for (const Operand& target : program.targets(step)) {
    (target.space == Space::channel ? cost.sent : cost.written) += step.count;
    if (target.space == Space::channel) cost.delivered += step.count * program.channels[target.index].receiver_count;
  }
  if (step.verb == Verb::reduce && step.source_count > 0) cost.folded = (step.source_count - std::uint32_t{1}) * step.count;
  if (step.verb == Verb::scale || step.verb == Verb::finish || step.finishes) cost.scaled += step.count;
  cost.coded = times_coded(program, step) * step.count;
  return cost;
}

StepCost cost_of(const Program& program) {
  StepCost all;
  for (const Step& step : program.steps) all += cost_of(program, step);
  return all;
}

}  // namespace seto
