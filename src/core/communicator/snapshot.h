#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/core/record/flight_recorder.h"
#include "src/core/record/wait_reports.h"
#include "transports/transport.h"

namespace seto {

// What a communicator knows of one of its ranks.
struct PeerState {
  enum class Life : std::uint8_t { own, alive, left, dead };

  Life life = Life::alive;
  std::string way;           // as its connection says; empty: this rank
  std::string why_dead;      // if it is
  std::uint64_t done = 0;    // operations, as it says
  Rank blames = -1;          // once it has left: the rank at fault; -1: itself, or nobody
  std::optional<Note> note;  // the last that it wrote, if it is still there
};

// A call that the flight recorder remembers, with what it waits for if it said so.
struct RecordedEntry {
  RecordedOperation operation;
  std::optional<WaitOfCall> wait;
};

struct CommunicatorState {
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::uint32_t under_way = 0;     // tasks of streams
  std::uint64_t leased_bytes = 0;  // slots, of the whole context
  std::uint64_t used_bytes = 0;    // boards too
  Status failure;
  Rank culprit = -1;               // of the failure, as this rank knows; -1: nobody, or none
  std::uint64_t failed_at_us = 0;  // wall clock
  std::vector<PeerState> peers;
  std::uint64_t recorded = 0;  // calls ever
  std::vector<RecordedEntry> entries;
  // Two readings at once: what converts the ticks of entries.
  std::uint64_t now_ticks = 0;
  std::uint64_t now_us = 0;

  // Ticks as a time of the wall clock.
  [[nodiscard]] std::uint64_t wall_us(std::uint64_t ticks) const;
};

}  // namespace seto
