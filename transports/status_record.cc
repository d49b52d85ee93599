#include "transports/status_record.h"

#include <bit>
#include <cstring>

#include "src/base/text.h"

namespace seto {
namespace {

static_assert(std::endian::native == std::endian::little, "words are sent in the byte order of memory");

void put(std::string& bytes, std::uint64_t word) { bytes.append(reinterpret_cast<const char*>(&word), sizeof word); }

std::uint64_t take(std::string_view& bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  bytes.remove_prefix(sizeof word);
  return word;
}

std::uint64_t word_of(Fate fate) { return std::uint64_t{fate.reason} << 32 | fate.culprit; }

}  // namespace

void StatusRecord::write(const Note& note) {
  Slot& slot = notes_[note.operation % kNotesKept];
  const std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  slot.sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.operation.store(note.operation, std::memory_order_relaxed);
  slot.digest_and_verdict.store(std::uint64_t{note.digest} << 32 | note.verdict, std::memory_order_relaxed);
  for (std::size_t i = 0; i < slot.words.size(); ++i) slot.words[i].store(note.words[i], std::memory_order_relaxed);
  slot.sequence.store(sequence + 2, std::memory_order_release);
}

void StatusRecord::leave(Fate fate) {
  std::uint64_t none = 0;
  fate_.compare_exchange_strong(none, word_of(fate), std::memory_order_acq_rel);
}

void StatusRecord::explain(std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (explanation_.empty()) explanation_ = why.substr(0, kMostWords);
}

std::string StatusRecord::explanation() const {
  const std::lock_guard lock(mutex_);
  return explanation_;
}

// If the note changes while it is read, its writer has moved on to a later operation: there is no note to return.
bool StatusRecord::note_of(std::uint64_t operation, Note& note) const {
  const Slot& slot = notes_[operation % kNotesKept];
  const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
  if (before % 2 != 0) return false;
  note.operation = slot.operation.load(std::memory_order_relaxed);
  const std::uint64_t digest_and_verdict = slot.digest_and_verdict.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < slot.words.size(); ++i) note.words[i] = slot.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.sequence.load(std::memory_order_relaxed) != before || note.operation != operation) return false;
  note.digest = static_cast<std::uint32_t>(digest_and_verdict >> 32);
  note.verdict = static_cast<std::uint32_t>(digest_and_verdict);
  return operation != 0;
}

Fate StatusRecord::fate() const {
  const std::uint64_t word = fate_.load(std::memory_order_acquire);
  return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
}

std::string StatusRecord::encoded() const {
  std::string bytes;
  bytes.reserve(kFixedSize);
  // The fate is loaded before the number of completed operations: a reader must not see a departure without the operations that
  // were completed before it.
  const std::uint64_t fate = fate_.load(std::memory_order_acquire);
  put(bytes, fate);
  put(bytes, completed());
  put(bytes, kNotesKept);
  for (const Slot& slot : notes_) {
    Note note;
    const std::uint64_t operation = slot.operation.load(std::memory_order_relaxed);
    if (!note_of(operation, note)) note = {};
    put(bytes, note.operation);
    put(bytes, std::uint64_t{note.digest} << 32 | note.verdict);
    for (const std::uint64_t word : note.words) put(bytes, word);
    put(bytes, 0);  // reserved
  }
  return fate == 0 ? bytes : bytes + explanation();
}

Status StatusRecord::renew(std::string_view encoded) {
  if (encoded.size() < kFixedSize || encoded.size() > kFixedSize + kMostWords)
    return seto::failure(Code::remote_error, "a status record of %zu bytes; expected at least %zu", encoded.size(), kFixedSize);
  const std::uint64_t fate = take(encoded);
  const std::uint64_t completed = take(encoded);
  bool news = fate != 0 && fate_.load(std::memory_order_relaxed) == 0;
  if (take(encoded) != kNotesKept) return seto::failure(Code::remote_error, "a status record with an unexpected number of notes");
  for (Slot& slot : notes_) {
    Note note;
    note.operation = take(encoded);
    const std::uint64_t digest_and_verdict = take(encoded);
    note.digest = static_cast<std::uint32_t>(digest_and_verdict >> 32);
    note.verdict = static_cast<std::uint32_t>(digest_and_verdict);
    for (std::uint64_t& word : note.words) word = take(encoded);
    (void)take(encoded);
    const bool right_slot = &slot == &notes_[note.operation % kNotesKept];
    if (!right_slot || note.operation <= slot.operation.load(std::memory_order_relaxed)) continue;
    write(note);
    news = true;
  }
  if (fate != 0) explain(plain_ascii(encoded));
  if (completed > completed_.load(std::memory_order_relaxed)) {
    complete(completed);
    news = true;
  }
  if (fate != 0) leave({static_cast<std::uint32_t>(fate >> 32), static_cast<std::uint32_t>(fate)});
  if (news) renewals_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace seto
