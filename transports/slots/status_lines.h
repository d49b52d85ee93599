#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace seto::slots {

inline constexpr std::size_t kLineSize = 64;

struct Counter {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint64_t> held;  // the operation whose lent memory is being read at this moment; 0: none
};
struct alignas(kLineSize) CounterLine : Counter {};
static_assert(sizeof(CounterLine) == kLineSize);

// How far a member is and how it left. A peer may read these lines after the member has given back its board, to learn that it
// has departed, so they are not a part of the board: their memory serves other StatusLines later, and nothing else. Such a reader
// sees another identity.
struct StatusLines {
  CounterLine progress;  // operations that this member has completed
  CounterLine fate;      // how this member left
  CounterLine identity;  // of the owner: 0 once it uses no stream any more

  // For a new owner, before other members learn of it.
  void begin(std::uint64_t owner) {
    fate.value.store(0, std::memory_order_relaxed);
    progress.value.store(0, std::memory_order_relaxed);
    identity.value.store(owner, std::memory_order_release);
  }
};

}  // namespace seto::slots
