#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace seto::software_gpu {

[[nodiscard]] inline std::string hexadecimal(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

// "(1,0,0)"
[[nodiscard]] inline std::string triple(const std::array<std::uint32_t, 3>& values) {
  return std::string("(") + std::to_string(values[0]) + "," + std::to_string(values[1]) + "," + std::to_string(values[2]) + ")";
}

}  // namespace seto::software_gpu
