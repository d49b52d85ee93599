#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "transports/transport.h"

namespace seto {

// What a communicator knows of one of its ranks.
struct PeerState {
  enum class Life : std::uint8_t { own, alive, left, dead };

  Life life = Life::alive;
  std::uint64_t done = 0;    // operations, as it says
  Rank blames = -1;          // once it has left: the rank at fault; -1: itself, or nobody
  std::optional<Note> note;  // the last that it wrote, if it is still there
};

struct CommunicatorState {
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::uint32_t under_way = 0;     // tasks of streams
  std::uint64_t leased_bytes = 0;  // slots, of the whole context
  std::uint64_t used_bytes = 0;    // boards too
  Status failure;
  std::vector<PeerState> peers;
};

}  // namespace seto
