#pragma once

#include <cfenv>
#include <cstdint>

#include "tests/software_gpu/modifiers.h"

namespace seto::software_gpu {

enum class Rounding : std::uint8_t { nearest, zero, down, up };

// Takes .rn, .rz, .rm or .rp; without one it is the nearest.
[[nodiscard]] inline Rounding take_rounding(Modifiers& modifiers) {
  constexpr std::array<std::string_view, 4> kNames{"rn", "rz", "rm", "rp"};
  const int which = modifiers.take_one_of(kNames);
  return which < 0 ? Rounding::nearest : static_cast<Rounding>(which);
}

// Host arithmetic in this scope rounds so. The operands and the result must be volatile, as compilers move arithmetic over calls.
class HostRounding final {
 public:
  explicit HostRounding(Rounding rounding) : changed_(rounding != Rounding::nearest) {
    if (changed_) {
      constexpr std::array<int, 4> kModes{FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
      std::fesetround(kModes[static_cast<std::size_t>(rounding)]);
    }
  }
  ~HostRounding() {
    if (changed_) std::fesetround(FE_TONEAREST);
  }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  bool changed_;
};

}  // namespace seto::software_gpu
