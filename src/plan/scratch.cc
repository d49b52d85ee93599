#include "src/plan/scratch.h"

#include <vector>

namespace seto {

void compact_scratch(Program& program) {
  std::vector<std::uint32_t> renumbered(program.scratch_chunks, 0);
  const auto for_each_use = [&](auto&& visit) {
    for (const Step& step : program.steps)
      for (std::uint32_t i = 0; i < step.source_count + std::uint32_t{step.target_count}; ++i) {
        Operand& operand = program.operands[step.first_operand + i];
        if (operand.space == Space::scratch) visit(operand, step.count);
      }
  };
  for_each_use([&](const Operand& operand, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) renumbered[operand.index + i] = 1;
  });
  std::uint32_t next = 0;
  for (std::uint32_t& chunk : renumbered) chunk = chunk != 0 ? next++ : 0;
  for_each_use([&](Operand& operand, std::uint32_t) { operand.index = renumbered[operand.index]; });
  program.scratch_chunks = next;
}

}  // namespace seto
