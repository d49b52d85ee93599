#include "tests/software_gpu/program.h"

namespace seto::software_gpu {

const Function* Program::entry(std::string_view name) const {
  for (const Function& function : functions)
    if (function.is_entry && function.name == name) return &function;
  return nullptr;
}

std::string_view Program::line(std::uint32_t number) const {
  return number >= 1 && number <= lines.size() ? std::string_view(lines[number - 1]) : std::string_view{};
}

}  // namespace seto::software_gpu
