#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"

// What an engine sees of a medium. A transport moves opaque bytes between members 0 … n - 1 of a circle (the ranks of a
// communicator that it reaches); it knows nothing of collectives.
//
// Nothing here blocks, allocates on the data path or calls back. All calls of one circle come from one thread at a time; that
// thread may change between calls if the changes are ordered (the context's progress token orders them).
namespace seto {

// Which slice of which operation: operations count up from 1, a slice is a position within. Numbers only grow, so one 64-bit
// comparison says "this far".
using Mark = std::uint64_t;
inline constexpr int kSliceBits = 24;
inline constexpr std::uint64_t kMaxSlices = (std::uint64_t{1} << kSliceBits) - 2;
constexpr Mark mark_of(std::uint64_t operation, std::uint64_t slice) { return operation << kSliceBits | slice; }
constexpr std::uint64_t operation_of(Mark mark) { return mark >> kSliceBits; }
constexpr std::uint64_t slice_of(Mark mark) { return mark & ((std::uint64_t{1} << kSliceBits) - 1); }

// Both ends derive the same address from the plan.
struct StreamAddress {
  std::uint32_t sender = 0;  // member
  std::uint8_t group = 0;    // 0: one receiver; else a multicast group of the sender
  std::uint16_t port = 0;
};

struct StreamGeometry {
  std::uint32_t slot_size = 0;  // bytes of the largest message
  std::uint32_t depth = 2;      // slots, at least; the sender decides
  std::uint64_t slices = 1;
  std::uint32_t digest = 0;  // of everything that both ends must agree on; always compared
};

// What no transport carries is refused when a stream is opened. Offsets within a ring of slots are computed in 64 bits, the
// padded size of one slot in 32.
inline constexpr std::uint32_t kLargestSlot = std::uint32_t{1} << 31;
[[nodiscard]] Status check(const StreamGeometry& geometry);

// The sending end. For each slice of an operation, in slice order: acquire, fill, commit. Slices of one operation and the next
// may be under way at once.
class SendStream {
 public:
  virtual ~SendStream() = default;

  // Where the message is to be produced, or nullptr: not yet. Idempotent until the commit.
  virtual std::byte* acquire(Mark mark) = 0;
  // The message is complete. Streaming stores into it have been fenced.
  virtual void commit(Mark mark) = 0;
  // Where bytes have to be moved one by one it matters how many of a slot there are: then it is said before each commit.
  [[nodiscard]] virtual bool asks_size() const { return false; }
  virtual void tell_size(Mark mark, std::size_t size) { (void)mark, (void)size; }

  // Lending: where receivers can read this member's memory, a message need not be moved. In place of acquire, for every slice of
  // the operation, with the same memory: the message of slice s lies, once committed, at `first + s * stride`, and does not
  // change until all of them are taken. False: not yet.
  [[nodiscard]] virtual bool lends() const { return false; }
  virtual bool lend(Mark mark, const std::byte* first, std::size_t stride) {
    (void)mark, (void)first, (void)stride;
    return false;
  }
  // Every receiver has released all slices of the operation.
  [[nodiscard]] virtual bool taken(std::uint64_t operation) {
    (void)operation;
    return true;
  }
  // Takes back what the operation lent, because it failed. True: nobody reads it, nor ever will.
  virtual bool revoke(std::uint64_t operation) {
    (void)operation;
    return true;
  }
};

// Where the messages of an operation are wanted: that of slice s at `first + s * stride`, and all together fill `size` bytes.
struct Placement {
  std::uint64_t operation = 0;
  std::byte* first = nullptr;
  std::size_t stride = 0;
  std::size_t size = 0;
  std::uint64_t until = 0;  // slices below it; those may be written from now on, and nobody else touches their places

  // Of a slice.
  [[nodiscard]] std::size_t size_of(std::uint64_t slice) const {
    return slice < until && slice * stride < size ? std::min(stride, size - slice * stride) : 0;
  }
};

// The receiving end: front, use in place, release.
class ReceiveStream {
 public:
  virtual ~ReceiveStream() = default;

  // The message, or nullptr: not yet, or never (see Circle::failure).
  virtual const std::byte* front(Mark mark) = 0;
  // Its bytes will not be looked at again.
  virtual void release(Mark mark) = 0;

  // Where a message is as long as its sender said, that is compared with what is due before it is read. False: it is not that
  // long (see Circle::failure).
  [[nodiscard]] virtual bool asks_size() const { return false; }
  virtual bool brings(Mark mark, std::size_t size) {
    (void)mark, (void)size;
    return true;
  }

  // What this stream brings may be lent. Then every look at a message lies between hold and release (or let_go, if it is to be
  // looked at again). False: it was revoked.
  [[nodiscard]] virtual bool borrows() const { return false; }
  virtual bool hold(Mark mark) {
    (void)mark;
    return true;
  }
  virtual void let_go(Mark mark) { (void)mark; }

  // Placing: where bytes are moved one by one they may as well be moved to where they are wanted. Said before or while they come,
  // and again with a larger `until`; what came earlier, or is not as long as it should be, lies elsewhere: front() says where.
  [[nodiscard]] virtual bool places() const { return false; }
  virtual void place(const Placement& placement) { (void)placement; }
  // The operation has failed: from now on nothing of it is written there.
  virtual void displace(std::uint64_t operation) { (void)operation; }
};

// What a message between two members is: stated by its sender, compared with what the receiver expects.
struct Letter {
  std::uint64_t size = 0;     // bytes
  std::uint64_t label = 0;    // the rest of what both ends must agree on; opaque here
  std::uint32_t verdict = 0;  // not 0: this end rejected its own call, and nothing moves

  friend bool operator==(const Letter&, const Letter&) = default;
};

// Bytes of one message that may be written or read now.
struct PairPiece {
  // refused: this message is over, and the ends do not agree about it; see other_end().
  enum class State : std::uint8_t { waiting, ready, refused };

  State state = State::waiting;
  std::byte* data = nullptr;
  std::size_t size = 0;
};

// Messages of any length from one member to another, in order, beside all operations. Both ends count them from 1. A message is
// sent, or received, piece by piece; an empty one has one empty piece.
class PairSender {
 public:
  virtual ~PairSender() = default;

  // The message that is next, or under way.
  [[nodiscard]] virtual std::uint64_t current() const = 0;
  // Room for its next bytes. The same letter until the message is over.
  virtual PairPiece acquire(const Letter& letter) = 0;
  // The piece is filled; streaming stores into it have been fenced. True: that was the last.
  virtual bool commit() = 0;
  // After a refusal: what the receiver says that it expects.
  [[nodiscard]] virtual Letter other_end() const = 0;
};

class PairReceiver {
 public:
  virtual ~PairReceiver() = default;

  [[nodiscard]] virtual std::uint64_t current() const = 0;
  // Its next bytes. With a verdict in the letter the message is refused, whatever it is.
  virtual PairPiece front(const Letter& letter) = 0;
  virtual bool release() = 0;
  [[nodiscard]] virtual Letter other_end() const = 0;
  // A message has begun to arrive that nobody receives yet.
  [[nodiscard]] virtual bool knocks() const = 0;
  // What it says of itself; only while it knocks.
  [[nodiscard]] virtual Letter at_the_door() const = 0;
};

// What a member tells the others about an operation, for the case that they do not agree: opaque here, compared by digest.
struct Note {
  std::uint64_t operation = 0;
  std::uint32_t digest = 0;
  std::uint32_t verdict = 0;  // 0: taking part. Else why not
  std::uint64_t words[5] = {};
};

// Operations for which a note can be read after it was written.
inline constexpr std::uint64_t kNotesKept = 8;
// Bytes of what one that leaves says to the others.
inline constexpr std::size_t kMostWords = 1'000;

// Memory of another member as it is mapped here.
struct Mapping {
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

// How a member left a circle. A plain number crosses the boundary, so unknown ones can come.
struct Fate {
  std::uint32_t reason = 0;   // 0: it has not left
  std::uint32_t culprit = 0;  // the member at fault, as far as the one that left knows
};

// The streams of one communicator over one transport.
class Circle {
 public:
  virtual ~Circle() = default;

  [[nodiscard]] virtual std::uint32_t members() const = 0;

  // Streams are opened when a launch is bound and used for any number of operations. `receivers` of a send stream are members.
  virtual Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                        const StreamGeometry& geometry) = 0;
  virtual Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry& geometry) = 0;

  // Messages to and from one member: at most one of each for a member. Gone before the circle.
  virtual Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) {
    (void)receiver;
    return seto::failure(Code::invalid_usage, "this transport carries no messages between two members");
  }
  virtual Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) {
    (void)sender;
    return seto::failure(Code::invalid_usage, "this transport carries no messages between two members");
  }

  // The memory face: what a member shares, to be read in place (never written: access is pull). What a message names by its
  // offset in it may be read once that message is there, and until its owner hears that it was. Empty where the medium has no
  // such thing.
  [[nodiscard]] virtual Mapping direct(std::uint32_t member) const {
    (void)member;
    return {};
  }

  // Before the first stream of an operation is touched.
  virtual void begin(const Note& note) = 0;
  // Before complete: the operation did not end well here, and what others sent for it is nobody's.
  virtual void disregard(std::uint64_t operation) { (void)operation; }
  // This member has finished all operations up to this one: it will read nothing of theirs again.
  virtual void complete(std::uint64_t operation) = 0;
  // The lowest operation that this member may begin only when the others are further: streams of operation k are reused by
  // operation k + window().
  [[nodiscard]] virtual std::uint64_t window() const = 0;

  // Slow path. What a member last said it is doing about this operation; false if it has not come to it or left it long ago.
  virtual bool note_of(std::uint32_t member, std::uint64_t operation, Note& note) const = 0;
  [[nodiscard]] virtual std::uint64_t completed_by(std::uint32_t member) const = 0;
  // This member leaves, for a reason that the others may look up: after it, no operation of theirs that needs it can end. Any
  // thread; the first reason stays.
  virtual void leave(Fate fate) = 0;
  [[nodiscard]] virtual Fate fate_of(std::uint32_t member) const = 0;
  // Of one that has left, or whose process has ended: all that it ever sent is here.
  [[nodiscard]] virtual bool silent(std::uint32_t member) const {
    (void)member;
    return true;
  }
  // Before it leaves: why, in words for the others, kMostWords bytes of them. Theirs, where the medium carries words; else empty.
  virtual void explain(std::string_view why) { (void)why; }
  [[nodiscard]] virtual std::string explanation_of(std::uint32_t member) const {
    (void)member;
    return {};
  }
  // The last word, after leave and when all streams are gone: this member looks only at fates from here on. Memory that nobody
  // reads any more goes back; said again, it looks once more.
  virtual void depart() {}
  // That member has, and will look at nothing of this one's but its fate.
  [[nodiscard]] virtual bool departed(std::uint32_t member) const { return fate_of(member).reason != 0; }
  // The first thing that went wrong on these streams: a header that disagrees, or bytes that cannot be one.
  [[nodiscard]] virtual Status failure() const = 0;
  // Something came that fits no call of this member: failure() will say what, or soon.
  [[nodiscard]] virtual bool suspects() const { return false; }
};

}  // namespace seto
