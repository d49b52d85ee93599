#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transports/slots/status_lines.h"
#include "transports/transport.h"

// The board of a member: a range of its own segment that only the member writes and the others read.
//
//   notes        [kNotes]                    what this member is doing
//   words        16 lines                    why this member left, as text
//   outgoing     [window][port][target]      eight lines per sending end: position, slots, or a short message
//   taken        [window][port][sender][source of the stream]   how far this member has read a stream: the credit of its sender
//   outgoing     [window][target][port]      of ports from kInlinePorts on: one line per sending end
//   taken        [window][sender][source][port]                 of ports from kInlinePorts on: a quarter of a line each
//
//   messages     [receiver][kPairLines]      messages to one member: the header of each, or a short message
//   received     [sender]                    how far this member has read the messages of another
//
// Counters are marks and only grow: no line is reset while the board has the same owner. A board that is given back is cleared as
// a whole. How far a member is and how it left stands apart, in its StatusLines.
namespace seto::slots {

inline constexpr std::uint64_t kNotes = kNotesKept;

// Ports below this number have all lines of a short message. Only plans of many ranks use more ports, such as a ring, which sends
// to one other rank over hundreds of them. The lines of these ports lie side by side for each pair, so that such a ring touches
// few pages, and take an eighth of the addresses: 1,025 ranks need 0.7 GB each, and would need 3.5 GB.
inline constexpr std::uint32_t kInlinePorts = 64;

// Short messages are stored in the lines themselves, each part with its own flag: a reader that has the flag has the data. This
// saves one cache miss (60 ns near, 250 ns far) compared to a flag and data in different lines.
inline constexpr std::uint32_t kHeadBytes = 32;
inline constexpr std::uint32_t kTailBytes = 56;
inline constexpr std::uint32_t kTailLines = 7;
inline constexpr std::uint32_t kInlineSize = kHeadBytes + kTailLines * kTailBytes;

// In place of the depth of a head: the messages are lent, and the head states their address in the sender's process, or their
// offset in its LendableMemory.
inline constexpr std::uint32_t kLentHere = 0;
inline constexpr std::uint32_t kLentInFile = ~0U;
// Added to `revoked`: the sender did not wait for a reader whose process stood still.
inline constexpr std::uint64_t kAbandoned = std::uint64_t{1} << 63;

// The head of one stream of one operation.
struct alignas(kLineSize) StreamLine {
  std::atomic<Mark> mark;  // slices committed; release-stored after everything they need
  std::uint64_t done;      // operations the sender has completed: credit for the other direction
  std::uint32_t digest;
  std::uint32_t depth;  // or kLentHere or kLentInFile
  union {
    struct {
      std::uint64_t offset;  // of the slots in the sender's segment; the address or offset of lent memory
      std::uint32_t stride;
      std::uint32_t check;  // of the fields beside it: see check_of
    } slots;
    std::byte message[kHeadBytes];
  };
  std::atomic<std::uint64_t> revoked;  // the last operation whose lent memory was taken back
};
static_assert(sizeof(StreamLine) == kLineSize);

// Detects a stray store that leaves wrong but plausible numbers, for example the slots of another stream.
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

// Messages between two members.
inline constexpr std::uint32_t kPairLines = 4;  // messages to one member that may be in flight at once
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

// The receiver's line. After a refusal, size, label and verdict are those that the receiver expected; stored before `taken`.
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

// Why a member left: written once, before its fate, and kept until all others have departed or died. The check covers size and
// text, because a dying process may have written only a part.
struct alignas(kLineSize) WordLines {
  std::atomic<std::uint64_t> size_and_check;
  std::atomic<std::uint64_t> text[kMostWords / sizeof(std::uint64_t)];
};
static_assert(sizeof(WordLines) == 16 * kLineSize);

// Offsets of the parts of a board; equal for all members of a group.
class BoardLayout {
 public:
  BoardLayout(std::uint32_t members, std::uint32_t ports) : members_(members), ports_(ports) {}

  [[nodiscard]] std::uint32_t members() const { return members_; }
  [[nodiscard]] std::uint32_t ports() const { return ports_; }
  [[nodiscard]] std::size_t size() const { return received_at() + members_ * kLineSize; }

  [[nodiscard]] std::size_t note(std::uint64_t operation) const { return operation % kNotes * kLineSize; }
  [[nodiscard]] std::size_t words() const { return kNotes * kLineSize; }
  // The StreamLines of a sending end, or only its StreamLine if the port has no inline messages. `target`: the receiving member,
  // or members() + group - 1.
  [[nodiscard]] std::size_t outgoing(std::uint64_t window, std::uint32_t port, std::uint32_t target) const {
    if (has_inline_lines(port))
      return outgoing_at() + ((window * inline_ports() + port) * targets() + target) * sizeof(StreamLines);
    return far_outgoing_at() + ((window * targets() + target) * far_ports() + port - kInlinePorts) * sizeof(StreamLine);
  }
  // The Counter of a receiving end. `source`: 0 for a stream of one receiver, else the group.
  [[nodiscard]] std::size_t taken(std::uint64_t window, std::uint32_t port, std::uint32_t sender, std::uint32_t source) const {
    if (has_inline_lines(port))
      return taken_at() + (((window * inline_ports() + port) * members_ + sender) * sources() + source) * kLineSize;
    return far_taken_at() +
           (((window * members_ + sender) * sources() + source) * far_ports() + port - kInlinePorts) * sizeof(Counter);
  }
  // Messages over this port may lie in the lines beyond the head.
  [[nodiscard]] static bool has_inline_lines(std::uint32_t port) { return port < kInlinePorts; }
  [[nodiscard]] std::size_t messages(std::uint32_t receiver) const { return messages_at() + receiver * kPairLines * kLineSize; }
  [[nodiscard]] std::size_t received(std::uint32_t sender) const { return received_at() + sender * kLineSize; }

 private:
  [[nodiscard]] std::uint32_t inline_ports() const { return ports_ < kInlinePorts ? ports_ : kInlinePorts; }
  [[nodiscard]] std::uint64_t far_ports() const { return ports_ - inline_ports(); }
  [[nodiscard]] std::size_t far_outgoing_at() const {
    return taken_at() + kWindow * inline_ports() * members_ * sources() * kLineSize;
  }
  [[nodiscard]] std::size_t far_taken_at() const {
    return far_outgoing_at() + kWindow * targets() * far_ports() * sizeof(StreamLine);
  }
  [[nodiscard]] std::size_t messages_at() const {
    const std::size_t end = far_taken_at() + kWindow * members_ * sources() * far_ports() * sizeof(Counter);
    return (end + kLineSize - 1) / kLineSize * kLineSize;
  }
  [[nodiscard]] std::size_t received_at() const { return messages_at() + members_ * kPairLines * kLineSize; }
  [[nodiscard]] std::uint32_t targets() const { return members_ + kMostGroups; }
  [[nodiscard]] static std::uint32_t sources() { return kMostGroups + 1; }
  [[nodiscard]] std::size_t outgoing_at() const { return words() + sizeof(WordLines); }
  [[nodiscard]] std::size_t taken_at() const {
    return outgoing_at() + kWindow * inline_ports() * targets() * sizeof(StreamLines);
  }

  std::uint32_t members_;
  std::uint32_t ports_;
};

}  // namespace seto::slots
