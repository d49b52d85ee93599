#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace seto {

// A member's description of one operation. Members compare digests; the words explain a mismatch to the user. The transport does
// not interpret them.
struct Note {
  std::uint64_t operation = 0;
  std::uint32_t digest = 0;
  std::uint32_t verdict = 0;  // 0: the member takes part; otherwise the reason why not
  std::uint64_t words[5] = {};
};

// A note can be read until the writer has begun this many later operations.
inline constexpr std::uint64_t kNotesKept = 8;
// Largest explanation of a departure in bytes; the rest is cut off.
inline constexpr std::size_t kMostWords = 1'000;

// How a member left the group. The numbers come from another process, so unknown values are possible.
struct Fate {
  std::uint32_t reason = 0;   // 0: the member has not left
  std::uint32_t culprit = 0;  // the member at fault, as far as the leaving member knows
};

// The status that the members of a group publish about themselves, independent of how streams move bytes: the operation each
// works on, how many it has completed, how it left. There are two implementations: slots::BoardStatus (a board in shared memory)
// and MessageStatus (messages on the control plane, for every transport without shared memory).
//
// No call blocks. leave() and explain() may be called by any thread; the other calls follow the rule of PeerGroup. The number of
// completed operations is published by PeerGroup::complete, the departure by PeerGroup::depart.
class PeerStatus {
 public:
  virtual ~PeerStatus() = default;

  // ---- operations ----

  // Publishes this member's note. Called before the first stream of the operation is used.
  virtual void begin(const Note& note) = 0;
  // Slow path. Reads a member's latest known note about the operation. False: the member has not begun the operation, or has
  // overwritten the note, or (on MessageStatus) the note has not arrived yet.
  virtual bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const = 0;
  // The number of operations that the member has completed, as far as known here.
  [[nodiscard]] virtual std::uint64_t completed_by(std::uint32_t member) const = 0;

  // ---- departure ----

  // This member leaves the group: operations of other members that need it cannot end any more. The first reason is kept.
  virtual void leave(Fate fate) = 0;
  [[nodiscard]] virtual Fate fate_of(std::uint32_t member) const = 0;
  // Grows after each departure of another member, and perhaps for other reasons: while it stays the same, no member has left.
  // Reads one cache line of this member's own memory, so every call may ask.
  [[nodiscard]] virtual std::uint64_t departures() const = 0;
  // Called before leave(): the reason as text for the other members.
  virtual void explain(std::string_view why) = 0;
  // Empty: the member has not left, or gave no text.
  [[nodiscard]] virtual std::string explanation_of(std::uint32_t member) const = 0;
  // The member has departed (PeerGroup::depart): it reads nothing of this member but its fate.
  [[nodiscard]] virtual bool departed(std::uint32_t member) const = 0;
  // For a member that has left or whose process has ended: everything that it ever sent has arrived here.
  [[nodiscard]] virtual bool silent(std::uint32_t member) const = 0;
};

}  // namespace seto
