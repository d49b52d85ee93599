#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace seto::software_gpu {

enum class FaultKind : std::uint8_t {
  syntax,               // text that the parser does not understand
  unknown_instruction,  // an instruction or modifier without a handler
  refused,              // an instruction that this GPU does not model on purpose
  out_of_bounds,
  misaligned,
  race,    // accesses that nothing orders
  misuse,  // an instruction that the manual forbids in this place
  trap,
  hang,
};

// The only exception of this folder. The text names all that is known of the place.
class Fault final : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  [[nodiscard]] FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

}  // namespace seto::software_gpu
