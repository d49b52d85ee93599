#pragma once

#include <array>
#include <cstdint>

#include "tests/software_gpu/instruction.h"

namespace seto::software_gpu {

class Block;
class Thread;

// 32 lanes, or fewer in the last warp of a block. Lanes run alone; they meet only at instructions with a member mask.
class Warp final {
 public:
  Warp(Block& owner, std::uint32_t number) : block(owner), index(number) {}

  void add(Thread& thread, std::uint32_t lane);
  [[nodiscard]] Thread* lane(std::uint32_t number) const { return lanes_[number]; }
  [[nodiscard]] std::uint32_t ready() const { return ready_; }  // lanes that can run
  [[nodiscard]] bool can_run(std::uint64_t now) const { return ready_ != 0 && asleep_until <= now; }
  [[nodiscard]] std::uint32_t live() const { return live_; }  // lanes that have not exited

  void set_ready(std::uint32_t lane, bool ready) { ready_ = ready ? ready_ | (1U << lane) : ready_ & ~(1U << lane); }
  void exited(std::uint32_t lane);

  // The common action of the lanes of a member mask once all of them have come to the instruction.
  using Collective = void (*)(Warp& warp, std::uint32_t members, const Instruction& instruction);
  // The thread waits until all live lanes of `members` have come to an instruction of the same kind with the same mask.
  void meet(Thread& thread, std::uint32_t members, Collective collective);

  Block& block;
  const std::uint32_t index;
  std::uint64_t asleep_until = 0;  // in steps of the machine; it runs before only if nothing else can

 private:
  struct Waiting {
    Collective collective = nullptr;
    std::uint32_t members = 0;
    const Instruction* instruction = nullptr;
  };

  void try_meeting(std::uint32_t lane);

  std::array<Thread*, 32> lanes_{};
  std::array<Waiting, 32> waiting_{};
  std::uint32_t ready_ = 0;
  std::uint32_t live_ = 0;
};

// Calls function(thread) for each lane of the mask.
template <class F>
void for_each_lane(const Warp& warp, std::uint32_t mask, const F& function) {
  for (; mask != 0; mask &= mask - 1) function(*warp.lane(static_cast<std::uint32_t>(__builtin_ctz(mask))));
}

}  // namespace seto::software_gpu
