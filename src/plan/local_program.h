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

// The program of one rank in a group of calls: one lane for each peer and direction, in the order of the calls. Messages to
// itself are copies. Each rank makes its own program. The programs of all ranks form an all_to_all whose pieces are the messages
// of each pair, so the verifier accepts them (see VerifyRequest::messages).
struct LocalProgram {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // The transfers that a step moves, as indices in the caller's list.
  struct Moved {
    std::uint32_t source = kNone;
    std::uint32_t target = kNone;
  };

  Program program;
  std::vector<Moved> moved;  // by step
};

// `pieces` is the largest number of messages of any pair of ranks; chunks are numbered with it. 0 means the number that this rank
// has.
Result<LocalProgram> local_program(Rank rank, int ranks, std::span<const LocalTransfer> transfers, std::uint32_t pieces);

}  // namespace seto
