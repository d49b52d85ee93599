#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/plan/plan.h"

namespace seto {

// A send or a receive of one rank, in the order of its calls.
struct LocalTransfer {
  enum class Direction : std::uint8_t { send, receive };

  Direction direction = Direction::send;
  Rank peer = 0;

  friend bool operator==(const LocalTransfer&, const LocalTransfer&) = default;
};

// What one rank does in a group: one lane a peer and direction, in the order of the calls; messages to itself are copies. It is
// made by this rank alone. All ranks' programs joined are an all_to_all whose pieces are the messages of each pair, so that the
// verifier takes them (see VerifyRequest::messages).
struct LocalProgram {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Which transfers a step moves: of the caller's list.
  struct Moved {
    std::uint32_t source = kNone;
    std::uint32_t target = kNone;
  };

  Program program;
  std::vector<Moved> moved;  // by step
};

// `pieces`: messages of any pair of ranks, at most; what the chunks are numbered with. 0: as many as this rank has.
Result<LocalProgram> local_program(Rank rank, int ranks, std::span<const LocalTransfer> transfers, std::uint32_t pieces);

}  // namespace seto
