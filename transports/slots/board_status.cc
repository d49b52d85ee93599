#include "transports/slots/board_status.h"

#include <iterator>

#include "src/base/status.h"
#include "transports/slots/words.h"

namespace seto::slots {

// A seqlock: a later operation may overwrite the line while a slow reader reads it.
void BoardStatus::begin(const Note& note) {
  NoteLine& line = notes_[note.operation % kNotes];
  line.sequence.store(note.operation * 2 + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  line.operation.store(note.operation, std::memory_order_relaxed);
  line.digest_and_verdict.store(std::uint64_t{note.digest} << 32 | note.verdict, std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::size(note.words); ++i) line.words[i].store(note.words[i], std::memory_order_relaxed);
  line.sequence.store(note.operation * 2 + 2, std::memory_order_release);
}

bool BoardStatus::note_of(std::uint32_t member, std::uint64_t operation, Note& note) const {
  const auto& line = boards_.line<const NoteLine>(member, boards_.layout().note(operation));
  if (line.sequence.load(std::memory_order_acquire) != operation * 2 + 2) return false;
  note.operation = line.operation.load(std::memory_order_relaxed);
  const std::uint64_t both = line.digest_and_verdict.load(std::memory_order_relaxed);
  note.digest = static_cast<std::uint32_t>(both >> 32);
  note.verdict = static_cast<std::uint32_t>(both);
  for (std::size_t i = 0; i < std::size(note.words); ++i) note.words[i] = line.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  return line.sequence.load(std::memory_order_relaxed) == operation * 2 + 2;
}

void BoardStatus::leave(Fate fate) {
  std::uint64_t none = 0;
  auto& value = boards_.status_lines(boards_.own()).fate.value;
  if (!value.compare_exchange_strong(none, std::uint64_t{fate.reason} << 32 | fate.culprit)) return;
  for (std::uint32_t member = 0; member < boards_.layout().members(); ++member) {
    std::atomic<std::uint32_t>* const departures = boards_.member(member).departures;
    if (member != boards_.own() && departures != nullptr) departures->fetch_add(1, std::memory_order_release);
  }
  boards_.wake_others();
}

std::uint64_t BoardStatus::departures() const {
  const std::atomic<std::uint32_t>* const departures = boards_.member(boards_.own()).departures;
  return departures == nullptr ? 0 : departures->load(std::memory_order_acquire);
}

// A member that departs has left before: its fate is written before its identity is cleared, and stays until the lines are given
// back.
Fate BoardStatus::fate_of(std::uint32_t member) const {
  const auto& fate = boards_.status_lines(member).fate.value;
  std::uint64_t value = fate.load(std::memory_order_acquire);
  const std::uint64_t identity = identity_of(member);
  const bool own = identity == boards_.member(member).identity;
  if (!own && identity == 0 && value == 0) value = fate.load(std::memory_order_acquire);  // it left between the two loads
  const bool given_back = !own && (identity != 0 || value == 0);
  if (given_back) return {static_cast<std::uint32_t>(Code::invalid_usage), boards_.number_of(member)};
  return {static_cast<std::uint32_t>(value >> 32), static_cast<std::uint32_t>(value)};
}

void BoardStatus::explain(std::string_view why) {
  put_words(boards_.line<WordLines>(boards_.own(), boards_.layout().words()), why);
}

std::string BoardStatus::explanation_of(std::uint32_t member) const {
  if (fate_of(member).reason == 0) return {};
  return words_in(boards_.line<const WordLines>(member, boards_.layout().words()));
}

bool BoardStatus::gone(std::uint32_t member) const {
  const std::atomic<bool>* const dead = boards_.member(member).dead;
  return (dead != nullptr && dead->load(std::memory_order_acquire)) || fate_of(member).reason != 0;
}

}  // namespace seto::slots
