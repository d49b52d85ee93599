#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/result.h"

namespace seto::resume {

struct NumberRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// Which frames of the peer have arrived whole. Ranges may be left out, which costs a frame sent twice; none is ever invented.
struct Heard {
  static constexpr std::size_t kMostRanges = 64;

  std::uint64_t all_up_to = 0;                    // all frames up to this one
  std::array<NumberRange, kMostRanges> ranges{};  // and these: beyond a gap each, ascending
  std::size_t count = 0;

  [[nodiscard]] std::span<const NumberRange> beyond() const { return {ranges.data(), count}; }
  // The largest number of all.
  [[nodiscard]] std::uint64_t last() const { return count == 0 ? all_up_to : ranges[count - 1].last; }
};

// As bytes, little-endian: all_up_to, the number of ranges, and of each range the distance from the number before it, and its
// length.
inline constexpr std::size_t kLongestHeard = 16 + 8 * Heard::kMostRanges;
using HeardBytes = std::array<std::byte, kLongestHeard>;
// Returns how many bytes were written.
std::size_t encode(const Heard& heard, HeardBytes& bytes);
// The bytes must be exactly one Heard. Whether its numbers were ever sent is for Retention::acknowledge to check.
Result<Heard> decode_heard(std::span<const std::byte> bytes);

}  // namespace seto::resume
