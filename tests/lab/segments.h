#pragma once

#include <cstdint>

namespace seto::lab {

using Nanoseconds = std::int64_t;

// A packet as a link handles it: TCP super-packets hold many segments, every other packet is one. Sizes in bytes of IP.
struct Segments {
  std::uint32_t count = 1;
  std::uint32_t size = 0;       // size of each segment but the last
  std::uint32_t last_size = 0;  // size of the last segment, which may be the only one

  [[nodiscard]] std::uint32_t size_of(std::uint32_t index) const { return index + 1 == count ? last_size : size; }
  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{count - 1} * size + last_size; }
};

// Adjacent segments of one packet that survived and arrive together.
struct Piece {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  Nanoseconds due = 0;
};

}  // namespace seto::lab
