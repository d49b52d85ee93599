#include "src/core/communicator/snapshot.h"

#include <algorithm>

#include "src/base/clock.h"
#include "src/core/communicator/members.h"
#include "src/core/communicator/operation_order.h"
#include "src/core/communicator/peer_failures.h"
#include "src/core/communicator/queued_tasks.h"
#include "transports/moving_way.h"

namespace seto {
namespace {

// A thread that drives a waiting call looks at its peers many times within this; a thread that computes does not answer.
constexpr int kAnswerMs = 20;
// After a failure, calls report what they waited for as soon as a thread drives them, and then end.
constexpr std::uint64_t kLastReportsMs = 1000;
// The first calls under way are enough: the later ones wait for them.
constexpr std::size_t kMostAsked = 16;

bool under_way(const RecordedOperation& operation) { return operation.state == RecordedState::begun; }

PeerState state_of(const Members& members, Rank rank) {
  PeerState peer;
  const Connection* const connection = members.connection_to(rank);
  if (connection != nullptr) peer.way = present_way(*connection);
  const Fate fate = members.fate_of(rank);
  if (rank == members.rank())
    peer.life = PeerState::Life::own;
  else if (fate.reason != 0)  // a rank that reported why it leaves did not die of something else
    peer.life = PeerState::Life::left;
  else if (connection->dead())
    peer.life = PeerState::Life::dead, peer.why_dead = connection->why_dead();
  if (fate.reason != 0 && fate.culprit != static_cast<std::uint32_t>(rank) &&
      fate.culprit < static_cast<std::uint32_t>(members.ranks()))
    peer.blames = static_cast<Rank>(fate.culprit);
  peer.done = members.completed_by(rank);
  // Notes are found by operation number, and a rank begins no operation beyond the window after what it has completed.
  for (std::uint64_t operation = peer.done + kWindow; operation > 0 && operation >= peer.done && !peer.note; --operation) {
    Note note;
    if (members.note_of(rank, operation, note)) peer.note = note;
  }
  return peer;
}

// Asks the calls under way what they wait for. After a failure they are not asked but report by themselves; a dump may come
// between the failure and these last reports, so it waits for them.
void ask_calls(const SnapshotSources& sources) {
  WaitReports& waits = sources.observability.waits();
  const auto calls = [&](bool without_report) {
    std::vector<FlightRecorder::Ticket> some;
    WaitReport report;
    for (const RecordedOperation& operation : sources.observability.recorder().read())
      if (under_way(operation) && some.size() < kMostAsked && !(without_report && waits.find(operation.sequence, report)))
        some.push_back(operation.sequence);
    return some;
  };
  if (!sources.failures.failed()) {
    const std::vector<FlightRecorder::Ticket> asked = calls(false);
    if (asked.empty()) return;
    const WaitReports::Question question = waits.ask();
    sources.context.wake();
    return waits.await(asked, question, kAnswerMs);
  }
  const Deadline until = Deadline::after_ms(kLastReportsMs);
  for (auto silent = calls(true); !silent.empty() && !until.passed(); silent = calls(true)) waits.await(silent, 0, kAnswerMs);
}

void put_records(const SnapshotSources& sources, CommunicatorSnapshot& snapshot) {
  ask_calls(sources);
  const FlightRecorder& recorder = sources.observability.recorder();
  snapshot.recorded = recorder.recorded();
  for (const RecordedOperation& operation : recorder.read()) {
    RecordedEntry entry{operation, {}};
    WaitReport wait;
    const bool waits = under_way(operation) || operation.state == RecordedState::failed;
    if (waits && sources.observability.waits().find(operation.sequence, wait)) entry.wait = std::move(wait);
    snapshot.entries.push_back(std::move(entry));
  }
  snapshot.now_ticks = ticks();
  snapshot.now_us = seto::wall_us();
}

}  // namespace

std::uint64_t CommunicatorSnapshot::wall_us(std::uint64_t ticks) const {
  return ticks == 0 || ticks > now_ticks ? now_us : now_us - std::min(now_us, ticks_to_ns(now_ticks - ticks) / 1000);
}

CommunicatorSnapshot take_snapshot(const SnapshotSources& sources) {
  const Members& members = sources.members;
  CommunicatorSnapshot snapshot;
  put_records(sources, snapshot);
  snapshot.done = sources.order.done();
  snapshot.begun = sources.order.begun();
  snapshot.issued = sources.order.issued();
  snapshot.under_way = sources.queued.under_way();
  const Transport::MemoryUse memory = sources.context.transports().memory_use();
  snapshot.leased_bytes = memory.leased;
  snapshot.used_bytes = memory.used;
  snapshot.failure = sources.failures.first();
  snapshot.failed_at_us = sources.observability.failed_at_us();
  const Fate own = members.fate_of(members.rank());
  if (sources.failures.failed() && own.culprit < static_cast<std::uint32_t>(members.ranks()))
    snapshot.culprit = static_cast<Rank>(own.culprit);
  for (Rank rank = 0; rank < members.ranks(); ++rank) snapshot.peers.push_back(state_of(members, rank));
  return snapshot;
}

}  // namespace seto
