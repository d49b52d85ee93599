#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/software_gpu/scalar_type.h"

namespace seto::software_gpu {

// The parts of an opcode after its name. A resolver takes those that it implements; one that is left makes the instruction
// unknown, so that no modifier is ever ignored.
class Modifiers final {
 public:
  explicit Modifiers(std::string_view opcode);

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool empty() const { return parts_.empty(); }
  [[nodiscard]] bool has(std::string_view part) const;

  bool take(std::string_view part);
  std::optional<ScalarType> take_type();
  // The position in `names` of the first that is there, or -1.
  template <std::size_t N>
  int take_one_of(const std::array<std::string_view, N>& names) {
    for (std::size_t i = 0; i < N; ++i)
      if (take(names[i])) return static_cast<int>(i);
    return -1;
  }
  // Cache hints change no result.
  void drop_cache_hints();

 private:
  std::string_view name_;
  std::vector<std::string_view> parts_;
};

}  // namespace seto::software_gpu
