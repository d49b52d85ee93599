#include "src/plan/scratch.h"

#include <algorithm>
#include <vector>

namespace seto {

void compact_scratch(Program& program) {
  const auto for_each_use = [&](auto&& visit) {
    for (const Step& step : program.steps)
      for (std::uint32_t i = 0; i < step.source_count + std::uint32_t{step.target_count}; ++i) {
        Operand& operand = program.operands[step.first_operand + i];
        if (operand.space == Space::scratch) visit(operand, step.count);
      }
  };
  std::vector<std::uint32_t> used;  // few of the numbers that builders give, which may be as many as ranks times ranks
  for_each_use([&](const Operand& operand, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) used.push_back(operand.index + i);
  });
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for_each_use([&](Operand& operand, std::uint32_t) {
    operand.index = static_cast<std::uint32_t>(std::lower_bound(used.begin(), used.end(), operand.index) - used.begin());
  });
  program.scratch_chunks = static_cast<std::uint32_t>(used.size());
}

}  // namespace seto
