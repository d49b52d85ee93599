#include "src/plan/cost.h"

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
  if (step.verb == Verb::encode || step.verb == Verb::decode) cost.coded = step.count;
  return cost;
}

StepCost cost_of(const Program& program) {
  StepCost all;
  for (const Step& step : program.steps) all += cost_of(program, step);
  return all;
}

}  // namespace seto
