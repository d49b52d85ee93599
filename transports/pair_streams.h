#pragma once

#include <cstddef>
#include <cstdint>

namespace seto {

// Describes a message between two members. The sender states it; the receiver compares it with what it expects.
struct MessageHeader {
  std::uint64_t size = 0;     // bytes
  std::uint64_t label = 0;    // everything else that both ends must agree on; the transport does not interpret it
  std::uint32_t verdict = 0;  // not 0: this end rejected its own call, and no bytes move

  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};

// The part of a message that may be written or read now.
struct PairPiece {
  // refused: the message has ended because the two ends do not agree; see other_end().
  enum class State : std::uint8_t { waiting, ready, refused };

  State state = State::waiting;
  std::byte* data = nullptr;
  std::size_t size = 0;
};

// Messages of any length from one member to another, in order, independent of operations. Both ends count messages from 1. A
// message moves piece by piece; an empty message has one empty piece. No call blocks.
class PairSender {
 public:
  virtual ~PairSender() = default;

  // The number of the message in progress, or of the next one.
  [[nodiscard]] virtual std::uint64_t current() const = 0;
  // A buffer for the next bytes. The header must stay the same until the message has ended.
  virtual PairPiece acquire(const MessageHeader& header) = 0;
  // Sends the piece. The caller has fenced its streaming stores. True: this was the last piece.
  virtual bool commit() = 0;
  // After a refusal: the header that the receiver expected.
  [[nodiscard]] virtual MessageHeader other_end() const = 0;
};

class PairReceiver {
 public:
  virtual ~PairReceiver() = default;

  [[nodiscard]] virtual std::uint64_t current() const = 0;
  // The next bytes. A header with a verdict refuses the message, whatever it is.
  virtual PairPiece front(const MessageHeader& header) = 0;
  // The caller reads the piece no more. True: this was the last piece.
  virtual bool release() = 0;
  // After a refusal: the header that the sender stated.
  [[nodiscard]] virtual MessageHeader other_end() const = 0;
  // A message has begun to arrive, and no call receives it yet.
  [[nodiscard]] virtual bool has_pending() const = 0;
  // The header of that message. Valid only while has_pending().
  [[nodiscard]] virtual MessageHeader pending_header() const = 0;
};

}  // namespace seto
