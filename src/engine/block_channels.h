#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/engine/bound_program.h"

namespace seto {

// A number that only grows and that one block writes.
struct alignas(64) BlockCounter {
  std::atomic<std::uint64_t> value{0};
};

// A channel in a device's memory: its slots, and how far its ends are.
struct BlockChannel {
  struct Flags {  // of one receiver, in slices
    BlockCounter posted;
    BlockCounter read;
  };

  Rank sender = -1;
  std::vector<Rank> receivers;
  std::size_t slot_size = 0;
  std::vector<std::byte> slots;
  std::unique_ptr<Flags[]> flags;  // by receiver
};

// The streams of all ranks, joined by their addresses.
struct BlockChannels {
  struct End {
    BlockChannel* channel = nullptr;
    std::size_t receiver = 0;  // of a receiving end: its index in `receivers`
  };

  // Fails if two ends disagree, or if one is missing.
  static Result<BlockChannels> join(std::span<const BoundProgram> programs, std::uint32_t capacity);

  std::vector<std::unique_ptr<BlockChannel>> channels;
  std::vector<std::vector<End>> ends;  // by rank and stream
};

}  // namespace seto
