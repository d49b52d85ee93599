#pragma once

#include <cstdint>

#include "src/base/types.h"
#include "src/core/launch/point_to_point.h"

namespace seto {

// The label of a message says what both ends must agree on besides its size: type | kind << 8 | number << 16. The number is that
// of the call for an all_to_all_v, else the tag of the message.
[[nodiscard]] inline std::uint64_t label_of(DataType type, TransferKind kind, std::uint64_t number) {
  return static_cast<std::uint64_t>(type) | static_cast<std::uint64_t>(kind) << 8 | number << 16;
}
[[nodiscard]] inline TransferKind kind_of(std::uint64_t label) { return static_cast<TransferKind>(label >> 8 & 0xff); }
[[nodiscard]] inline std::uint64_t number_of(std::uint64_t label) { return label >> 16; }

}  // namespace seto
