#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

// What members of a circle share: every one owns a board in its own segment, which only it writes, and the others read it.
//
//   notes        [kNotes]                    what I am doing
//   progress     1 line                      operations I have completed
//   fate         1 line                      how I left, once I have
//   identity     1 line                      whose board this is: 0 once I look at no stream any more
//   words        16 lines                    why I left, for people
//   outgoing     [window][port][target]      eight lines a stream end: how far it is, where its slots are, or a short message
//   taken        [window][port][sender][source of the stream]   how far I have read a stream: its sender's credit
//
//   messages     [receiver][kPairLines]      messages to one member: the header of each, or a short one itself
//   received     [sender]                    how far I have received the messages of a member
//
// A line is written by one member. Counters are marks and only grow: no line is reset while the board is one member's. A board
// that is given back is cleared as a whole, and its next owner has another identity.
namespace seto::slots {

inline constexpr std::size_t kLineSize = 64;
inline constexpr std::uint64_t kWindow = 2;  // operations whose streams may be in use at once
inline constexpr std::uint64_t kNotes = kNotesKept;
inline constexpr std::uint32_t kGroups = 4;  // multicast groups a sender may have

// Short messages travel in the lines themselves, each part beside a flag of its own: a reader that has the flag has the data,
// which saves one flight of a cache line (60 ns near, 250 ns far) over a flag here and data there.
inline constexpr std::uint32_t kHeadBytes = 32;
inline constexpr std::uint32_t kTailBytes = 56;
inline constexpr std::uint32_t kTailLines = 7;
inline constexpr std::uint32_t kInlineSize = kHeadBytes + kTailLines * kTailBytes;

// The head of one stream of one operation.
struct alignas(kLineSize) StreamLine {
  std::atomic<Mark> mark;  // slices committed; release-stored after everything they need
  std::uint64_t done;      // operations the sender has completed: credit for the other direction
  std::uint32_t digest;
  std::uint32_t depth;  // 0: lent
  union {
    struct {
      std::uint64_t offset;  // of the slots, in the sender's segment; of what is lent, in the address space
      std::uint32_t stride;
      std::uint32_t check;  // of the fields beside it: see check_of
    } slots;
    std::byte message[kHeadBytes];
  };
  std::atomic<std::uint64_t> revoked;  // the last operation whose lent memory was taken back
};
static_assert(sizeof(StreamLine) == kLineSize);

// A stray store could leave numbers that are wrong and yet possible: slots of another stream, say.
inline std::uint32_t check_of(std::uint64_t offset, std::uint32_t stride, std::uint32_t depth) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t sum = (offset + 1) * kOdd;
  sum = (sum ^ sum >> 32 ^ stride) * kOdd;
  sum = (sum ^ sum >> 32 ^ depth) * kOdd;
  return static_cast<std::uint32_t>(sum >> 32);
}

// The rest of a short message.
struct alignas(kLineSize) TailLine {
  std::byte message[kTailBytes];
  std::atomic<Mark> mark;
};
static_assert(sizeof(TailLine) == kLineSize);

struct StreamLines {
  StreamLine head;
  TailLine tail[kTailLines];
};

struct alignas(kLineSize) CounterLine {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint64_t> held;  // the operation whose lent memory is being read at this moment; 0: none
};
static_assert(sizeof(CounterLine) == kLineSize);

// Messages between two members.
inline constexpr std::uint32_t kPairLines = 4;  // messages to one member that may be under way at once
inline constexpr std::uint64_t kWhole = (std::uint64_t{1} << kSliceBits) - 1;  // of a mark: all slices of the message

struct alignas(kLineSize) PairLine {
  std::atomic<Mark> mark;  // pieces committed; kWhole with the last
  std::uint64_t size;
  std::uint64_t label;
  std::uint32_t verdict;
  std::uint32_t depth;  // 0: the message is in this line
  union {
    struct {
      std::uint64_t offset;  // of the ring, in the sender's segment
      std::uint32_t stride;
      std::uint32_t first;  // slot of the first piece
      std::uint32_t check;  // of the fields beside it: see check_of_pair
    } slots;
    std::byte message[kHeadBytes];
  };
};
static_assert(sizeof(PairLine) == kLineSize);

inline std::uint32_t check_of_pair(std::uint64_t offset, std::uint32_t stride, std::uint32_t depth, std::uint32_t first) {
  return check_of(offset, stride, depth) ^ check_of(first, depth, stride);
}

// The receiver's line. Size, label and verdict are those of the receiver where it refused; stored before `taken`.
struct alignas(kLineSize) PairTakenLine {
  std::atomic<Mark> taken;
  std::atomic<std::uint64_t> size;
  std::atomic<std::uint64_t> label;
  std::atomic<std::uint32_t> verdict;
};
static_assert(sizeof(PairTakenLine) == kLineSize);

struct alignas(kLineSize) NoteLine {
  std::atomic<std::uint64_t> sequence;  // 2 k + 1 while note k is being written, 2 k + 2 after
  std::atomic<std::uint64_t> operation;
  std::atomic<std::uint64_t> digest_and_verdict;
  std::atomic<std::uint64_t> words[5];
};
static_assert(sizeof(NoteLine) == kLineSize);

// Why a member left: written once, before its fate, and there until all others have departed or died. The check is of size and
// text, as a process that dies may have written half of it.
struct alignas(kLineSize) WordLines {
  std::atomic<std::uint64_t> size_and_check;
  std::atomic<std::uint64_t> text[kMostWords / sizeof(std::uint64_t)];
};
static_assert(sizeof(WordLines) == 16 * kLineSize);

// Where things lie on a board; equal for all members of a circle.
class BoardLayout {
 public:
  BoardLayout(std::uint32_t members, std::uint32_t ports) : members_(members), ports_(ports) {}

  [[nodiscard]] std::uint32_t members() const { return members_; }
  [[nodiscard]] std::uint32_t ports() const { return ports_; }
  [[nodiscard]] std::size_t size() const { return received_at() + members_ * kLineSize; }

  [[nodiscard]] std::size_t note(std::uint64_t operation) const { return operation % kNotes * kLineSize; }
  [[nodiscard]] std::size_t progress() const { return kNotes * kLineSize; }
  [[nodiscard]] std::size_t fate() const { return progress() + kLineSize; }
  [[nodiscard]] std::size_t identity() const { return fate() + kLineSize; }
  [[nodiscard]] std::size_t words() const { return identity() + kLineSize; }
  // `target`: the receiving member, or members() + group - 1.
  [[nodiscard]] std::size_t outgoing(std::uint64_t window, std::uint32_t port, std::uint32_t target) const {
    return outgoing_at() + ((window * ports_ + port) * targets() + target) * sizeof(StreamLines);
  }
  // `source`: 0 for a stream of one receiver, else the group.
  [[nodiscard]] std::size_t taken(std::uint64_t window, std::uint32_t port, std::uint32_t sender, std::uint32_t source) const {
    return taken_at() + (((window * ports_ + port) * members_ + sender) * sources() + source) * kLineSize;
  }
  [[nodiscard]] std::size_t messages(std::uint32_t receiver) const { return messages_at() + receiver * kPairLines * kLineSize; }
  [[nodiscard]] std::size_t received(std::uint32_t sender) const { return received_at() + sender * kLineSize; }

 private:
  [[nodiscard]] std::size_t messages_at() const { return taken_at() + kWindow * ports_ * members_ * sources() * kLineSize; }
  [[nodiscard]] std::size_t received_at() const { return messages_at() + members_ * kPairLines * kLineSize; }
  [[nodiscard]] std::uint32_t targets() const { return members_ + kGroups; }
  [[nodiscard]] static std::uint32_t sources() { return kGroups + 1; }
  [[nodiscard]] std::size_t outgoing_at() const { return words() + sizeof(WordLines); }
  [[nodiscard]] std::size_t taken_at() const { return outgoing_at() + kWindow * ports_ * targets() * sizeof(StreamLines); }

  std::uint32_t members_;
  std::uint32_t ports_;
};

}  // namespace seto::slots
