#pragma once

#include <cstdint>

#include "tests/software_gpu/bits.h"
#include "tests/software_gpu/instruction.h"
#include "tests/software_gpu/memory_model.h"

namespace seto::software_gpu {

// Generic addresses of spaces other than global, far above all addresses of a process.
inline constexpr std::uint64_t kSharedWindow = 1ULL << 56;
inline constexpr std::uint64_t kLocalWindow = 2ULL << 56;
inline constexpr std::uint64_t kParamWindow = 3ULL << 56;
inline constexpr std::uint64_t kWindowMask = ~0ULL << 56;

[[nodiscard]] constexpr std::uint64_t window_of(Space space) {
  return space == Space::shared ? kSharedWindow : space == Space::local ? kLocalWindow : space == Space::param ? kParamWindow : 0;
}

// A checked address: of a byte of this process, or an offset in the memory of the thread or its block.
struct Location {
  Space space = Space::global;
  std::uint64_t address = 0;
};

// Resolves a generic address. Throws a Fault if the access of `bytes` is misaligned or out of bounds.
[[nodiscard]] Location checked_location(Thread& thread, const Instruction& instruction, std::uint32_t bytes, bool writes);

// One access of up to 16 bytes, with the instruction's order and scope.
[[nodiscard]] Bits128 load_from(Thread& thread, const Instruction& instruction, const Location& location, std::uint32_t bytes);
void store_to(Thread& thread, const Instruction& instruction, const Location& location, Bits128 value, std::uint32_t bytes);
// Returns the old value.
std::uint64_t update_at(Thread& thread, const Instruction& instruction, const Location& location, const AtomicUpdate& update);

}  // namespace seto::software_gpu
