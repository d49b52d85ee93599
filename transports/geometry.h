#pragma once

#include <cstdint>

#include "src/base/result.h"

// Positions, addresses and shapes of streams: what both ends of a stream derive from the plan.
namespace seto {

// Names one slice of one operation. Operations count from 1; a slice is a position within its operation. Marks only grow, so one
// 64-bit comparison tells how far a stream is.
using Mark = std::uint64_t;
inline constexpr int kSliceBits = 24;
inline constexpr std::uint64_t kMaxSlices = (std::uint64_t{1} << kSliceBits) - 2;
constexpr Mark mark_of(std::uint64_t operation, std::uint64_t slice) { return operation << kSliceBits | slice; }
constexpr std::uint64_t operation_of(Mark mark) { return mark >> kSliceBits; }
constexpr std::uint64_t slice_of(Mark mark) { return mark & ((std::uint64_t{1} << kSliceBits) - 1); }

// Operations of one peer group that may be under way at once, over every transport. What an operation needs for itself exists so
// many times, and is found by the number of the operation modulo kWindow.
inline constexpr std::uint64_t kWindow = 2;

inline constexpr std::uint32_t kMostGroups = 4;  // multicast groups that a sender may have
// Ports that the plans of a communicator use: a ring uses two channels for each hop, and no algorithm uses more.
constexpr std::uint32_t ports_of(int ranks) {
  constexpr std::uint32_t kFewest = 16;
  return ranks < static_cast<int>(kFewest / 2) ? kFewest : 2 * static_cast<std::uint32_t>(ranks);
}

struct StreamAddress {
  std::uint32_t sender = 0;  // member
  std::uint8_t group = 0;    // 0: one receiver; otherwise a multicast group of the sender
  std::uint16_t port = 0;
};

struct StreamGeometry {
  std::uint32_t slot_size = 0;  // bytes of the largest message
  std::uint32_t depth = 2;      // the smallest number of slots; the sender decides
  std::uint64_t slices = 1;     // of one operation
  std::uint32_t digest = 0;     // of everything that both ends must agree on; compared for every operation
  std::uint64_t window = 0;     // bytes of an operation that the receiver should accept ahead at least; 0: the transport decides
};

// A transport calls this when a stream is opened and refuses what fails. Offsets within a ring of slots are computed in 64 bits,
// the padded size of one slot in 32 bits.
inline constexpr std::uint32_t kLargestSlot = std::uint32_t{1} << 31;
[[nodiscard]] Status check(const StreamGeometry& geometry);

}  // namespace seto
