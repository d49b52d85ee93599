#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/types.h"

namespace seto {

// The distance from an address of a buffer in the memory of its rank to the address of the same byte as the GPU of a receiver
// sees it, modulo 2^64. It is 0 where both are in one process.
struct LentDistance {
  std::uint64_t input = 0, output = 0;

  auto operator<=>(const LentDistance&) const = default;
};

// Changes a device program so that it lends addresses at which the receivers see the buffers. `end_peers`: by end of the program;
// `distances`: by rank.
void place_lent(std::span<std::byte> program, std::span<const Rank> end_peers, std::span<const LentDistance> distances);

}  // namespace seto
