#include "tests/software_gpu/modifiers.h"

#include <algorithm>

namespace seto::software_gpu {

Modifiers::Modifiers(std::string_view opcode) {
  const std::size_t dot = opcode.find('.');
  name_ = opcode.substr(0, dot);
  while (dot != std::string_view::npos && !opcode.empty()) {
    const std::size_t begin = opcode.find('.');
    if (begin == std::string_view::npos) break;
    opcode.remove_prefix(begin + 1);
    parts_.push_back(opcode.substr(0, opcode.find('.')));
  }
}

bool Modifiers::has(std::string_view part) const { return std::find(parts_.begin(), parts_.end(), part) != parts_.end(); }

bool Modifiers::take(std::string_view part) {
  const auto found = std::find(parts_.begin(), parts_.end(), part);
  if (found == parts_.end()) return false;
  parts_.erase(found);
  return true;
}

std::optional<ScalarType> Modifiers::take_type() {
  for (auto part = parts_.begin(); part != parts_.end(); ++part) {
    if (const auto type = type_named(*part)) {
      parts_.erase(part);
      return type;
    }
  }
  return std::nullopt;
}

void Modifiers::drop_cache_hints() {
  std::erase_if(parts_, [](std::string_view part) {
    return part.starts_with("L1::") || (part.starts_with("L2::") && part != "L2::cache_hint") || part == "ca" || part == "cg" ||
           part == "cs" || part == "wb" || part == "wt" || part == "lu";
  });
}

}  // namespace seto::software_gpu
