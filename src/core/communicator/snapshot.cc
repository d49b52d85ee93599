#include "src/core/communicator/snapshot.h"

#include <algorithm>

#include "src/base/clock.h"
#include "src/core/communicator/communicator.h"

namespace seto {
namespace {

// A rank that waits looks around many times in this; one that computes does not answer at all.
constexpr int kAnswerMs = 20;
// Calls of a communicator that has failed end, and say so before, as soon as anybody drives them.
constexpr std::uint64_t kLastWordsMs = 1000;
// Calls that begin early keep the others waiting.
constexpr std::size_t kMostAsked = 16;

bool under_way(const RecordedOperation& operation) { return operation.state == RecordedState::begun; }

}  // namespace

std::uint64_t CommunicatorState::wall_us(std::uint64_t ticks) const {
  return ticks == 0 || ticks > now_ticks ? now_us : now_us - std::min(now_us, ticks_to_ns(now_ticks - ticks) / 1000);
}

PeerState Communicator::state_of(Rank rank) const {
  const auto member = static_cast<std::uint32_t>(rank);
  PeerState peer;
  const std::shared_ptr<Connection>& connection = connections_[member];
  if (connection != nullptr) peer.way = connection->way();
  const Fate fate = circle_->fate_of(member);
  if (rank == rank_)
    peer.life = PeerState::Life::own;
  else if (fate.reason != 0)  // who said why it left did not die of it
    peer.life = PeerState::Life::left;
  else if (connection->dead())
    peer.life = PeerState::Life::dead, peer.why_dead = connection->why_dead();
  if (fate.reason != 0 && fate.culprit != member && fate.culprit < static_cast<std::uint32_t>(ranks_))
    peer.blames = static_cast<Rank>(fate.culprit);
  peer.done = circle_->completed_by(member);
  // Its notes are kept by number, and it cannot have begun more than a window beyond what it has completed.
  for (std::uint64_t operation = peer.done + circle_->window(); operation > 0 && operation >= peer.done && !peer.note;
       --operation) {
    Note note;
    if (circle_->note_of(member, operation, note)) peer.note = note;
  }
  return peer;
}

int Communicator::others_over_tcp() const {
  return static_cast<int>(std::count_if(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection != nullptr && connection->link() != nullptr;
  }));
}

// Asks those that are under way what they wait for. Who has failed is not asked: a dump may come between the failure and the last
// words of its calls.
void Communicator::ask_calls() const {
  Waits& waits = seeing_.waits();
  const auto calls = [&](bool silent) {
    std::vector<Recorder::Ticket> some;
    WaitOfCall said;
    for (const RecordedOperation& operation : seeing_.recorder().read())
      if (under_way(operation) && some.size() < kMostAsked && !(silent && waits.find(operation.sequence, said)))
        some.push_back(operation.sequence);
    return some;
  };
  if (!failed()) {
    const std::vector<Recorder::Ticket> asked = calls(false);
    if (asked.empty()) return;
    const Waits::Question question = waits.ask();
    context_->wake();
    return waits.await(asked, question, kAnswerMs);
  }
  const Deadline patience = Deadline::after_ms(kLastWordsMs);
  for (auto silent = calls(true); !silent.empty() && !patience.passed(); silent = calls(true)) waits.await(silent, 0, kAnswerMs);
}

void Communicator::put_records(CommunicatorState& state) const {
  ask_calls();
  const Recorder& recorder = seeing_.recorder();
  state.recorded = recorder.recorded();
  for (const RecordedOperation& operation : recorder.read()) {
    RecordedEntry entry{operation, {}};
    WaitOfCall wait;
    const bool waits = under_way(operation) || operation.state == RecordedState::failed;
    if (waits && seeing_.waits().find(operation.sequence, wait)) entry.wait = std::move(wait);
    state.entries.push_back(std::move(entry));
  }
  state.now_ticks = ticks();
  state.now_us = seto::wall_us();
}

CommunicatorState Communicator::state() const {
  CommunicatorState state;
  put_records(state);
  state.done = done_.load(std::memory_order_acquire);
  state.begun = begun();
  state.issued = issued();
  state.under_way = under_way_.load(std::memory_order_relaxed);
  state.leased_bytes = context_->pool().leased();
  state.used_bytes = context_->pool().used();
  state.failure = first_failure();
  state.failed_at_us = seeing_.failed_at_us();
  const Fate own = circle_->fate_of(static_cast<std::uint32_t>(rank_));
  if (failed() && own.culprit < static_cast<std::uint32_t>(ranks_)) state.culprit = static_cast<Rank>(own.culprit);
  for (Rank rank = 0; rank < ranks_; ++rank) state.peers.push_back(state_of(rank));
  return state;
}

}  // namespace seto
