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

// The knowledge of a communicator about one of its ranks.
struct PeerState {
  enum class Life : std::uint8_t { own, alive, left, dead };

  Life life = Life::alive;
  std::string way;           // Connection::way(); empty: this rank
  std::string why_dead;      // if it is dead
  std::uint64_t done = 0;    // the last operation up to which all have ended there
  Rank blames = -1;          // after it has left: the rank at fault; -1: itself or none
  std::optional<Note> note;  // the last one that it wrote, if it can still be read
};

// A call in the flight recorder, with what it waits for if it reported that.
struct RecordedEntry {
  RecordedOperation operation;
  std::optional<WaitReport> wait;
};

// The state of a communicator at one moment.
struct CommunicatorSnapshot {
  std::uint64_t issued = 0;
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  std::uint32_t under_way = 0;     // tasks of host streams
  std::uint64_t leased_bytes = 0;  // slots of the whole context
  std::uint64_t used_bytes = 0;    // the same with boards
  Status failure;
  Rank culprit = -1;               // of the failure, as far as this rank knows; -1: none
  std::uint64_t failed_at_us = 0;  // wall clock
  std::vector<PeerState> peers;
  std::uint64_t recorded = 0;  // calls since the communicator was made
  std::vector<RecordedEntry> entries;
  // Two clocks read at the same moment, to convert the ticks of entries.
  std::uint64_t now_ticks = 0;
  std::uint64_t now_us = 0;

  // Converts ticks to the time of the wall clock.
  [[nodiscard]] std::uint64_t wall_us(std::uint64_t ticks) const;
};

class Context;
class Members;
class Observability;
class OperationOrder;
class PeerFailures;
class QueuedTasks;

// The parts of a communicator that a snapshot reads.
struct SnapshotSources {
  const Members& members;
  const OperationOrder& order;
  const QueuedTasks& queued;
  const PeerFailures& failures;
  Context& context;
  const Observability& observability;
};

// Any thread. Waits a moment for the reports of calls that wait: at most 20 ms, or 1 s after a failure.
[[nodiscard]] CommunicatorSnapshot take_snapshot(const SnapshotSources& sources);

}  // namespace seto
