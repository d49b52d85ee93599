#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "transports/tcp/frames/frame.h"
#include "transports/tcp/link/receive_buffers.h"
#include "transports/tcp/streams/message_table.h"
#include "transports/transport.h"

namespace seto::tcp {

// The credit of one operation of a stream: the slices that the receiver accepts beyond the ones it has taken. A sender may use
// this much without a credit frame; beyond it, the credit frames of the receiver decide. Few slices if they are long, many if
// they are short. Over a far link a receiver grants a larger window (FrameKind::window), and then more slices count.
inline constexpr std::uint64_t kStreamCredit = std::uint64_t{4} << 20;  // bytes
inline constexpr std::uint64_t kMostAhead = 64;                         // slices
inline constexpr std::uint64_t kMostAheadFar = 256;
std::uint64_t slices_ahead(const StreamGeometry& geometry, std::uint64_t window);

// Operations that a sender may be ahead of a receiver that sends no data itself. The receiver buffers them.
inline constexpr std::uint64_t kMostOperations = 16;
// The same for operations of 1 MiB or more that need no window: one more than may be under way at a member, because it learns
// half a round trip late that the other one has ended an operation. Sixteen all-reduces of 1 MiB on two streams, 1 Gbit/s and 10
// ms, Intel Xeon: with two operations the link idled between them, and they had 92 MB/s; with three 119, all that the link
// carries.
inline constexpr std::uint64_t kLongOperations = kWindow + 1;
std::uint64_t operations_ahead(std::uint64_t bytes);
std::uint64_t operations_ahead(const StreamGeometry& geometry);

// Data of one stream that has arrived, whether or not the stream is open here. Used by the holder of the token, or under the
// domain's lock.
class InStream final {
 public:
  InStream(ReceiveShare& share, std::uint64_t most_ahead) : share_(share), most_ahead_(most_ahead) {}
  InStream(const InStream&) = delete;
  InStream& operator=(const InStream&) = delete;
  ~InStream();

  using Message = StreamMessage;

  // Bytes of the longest operation that a call here expects; 0: the stream is not open here.
  [[nodiscard]] std::uint64_t longest() const { return longest_; }
  void expect(std::uint64_t bytes) { longest_ = longest_ < bytes ? bytes : longest_; }
  // Bytes of one operation that the sender may be ahead. Only grows.
  [[nodiscard]] std::uint64_t window() const { return window_; }
  void widen(std::uint64_t window) { window_ = window; }

  struct Placed {
    std::byte* at = nullptr;  // the destination of the payload; null: it is dropped
    bool first = false;       // no part of this message came before
  };
  // The header of a frame has arrived. `done`: operations that have ended here.
  Result<Placed> place(const Frame& frame, std::uint64_t done);
  void arrived(const Frame& frame, const std::byte* at);
  // The frame did not arrive, and comes again: as if it had not been placed.
  void unplace(const Frame& frame, const std::byte* at);

  // The message if it is complete, or null.
  Message* whole(Mark mark);
  // Frees the memory of the message.
  void drop(Mark mark);
  // Frees all messages of operations up to this one.
  void forget_before(std::uint64_t operation);

  // Messages of that digest whose first byte has not arrived are received into that placement.
  void want(const Placement& placement, std::uint32_t digest);
  // Slices of that operation that the caller has taken, if their messages were wanted.
  [[nodiscard]] std::uint64_t taken(std::uint64_t operation) const {
    const Wanted& wanted = wanted_[operation % wanted_.size()];
    return wanted.where.operation == operation ? wanted.released : 0;
  }
  // Ends the placement of the operation and returns it. The caller stops sockets that read into it.
  Placement displace(std::uint64_t operation);

 private:
  struct Operation {
    explicit Operation(std::uint64_t most_ahead) : messages(most_ahead) {}

    std::uint64_t number = 0;
    std::uint64_t held_bytes = 0;  // of messages that have begun to arrive and are not released
    MessageTable messages;
  };

  struct Wanted {
    Placement where;
    std::uint32_t digest = 0;
    std::uint64_t released = 0;  // slices: their destinations belong to the caller again
  };

  // Chooses the memory of a message: the placement, or a buffer of this stream. Null: out of memory.
  void find_memory(Message& message, const Frame& frame);
  Operation* operation_of_mark(Mark mark);
  // Null: no part of it has arrived.
  Message* message_of_mark(Mark mark);
  Result<Message*> announce(Operation& operation, const Frame& frame, std::uint64_t done);
  void clear(Operation& operation);
  void free(Operation& operation, Message& message);
  // A frame of a message that is not wanted any more is read no further.
  void let_go(const Frame& frame, const std::byte* at);
  Status charge(std::size_t bytes);

  ReceiveShare& share_;
  std::size_t charged_ = 0;   // bytes of this object, its operations and their tables
  std::uint64_t most_ahead_;  // slices
  std::uint64_t window_ = kStreamCredit;
  std::uint64_t longest_ = 0;
  std::array<std::unique_ptr<Operation>, kMostOperations> operations_;
  std::array<Wanted, kWindow> wanted_;
  std::vector<Message> abandoned_;  // a socket still reads into them
};

// A message header in its encoded form, in front of each piece.
inline constexpr std::size_t kMessageHeaderSize = 24;
void put_header(std::byte* at, const MessageHeader& header);
MessageHeader header_in(const std::byte* at);

// The largest piece of a message, and the credit of one sender to one member: it sends no piece whose charge exceeds what is
// left.
inline constexpr std::size_t kPieceSize = std::size_t{128} << 10;
inline constexpr std::uint64_t kPairCredit = std::uint64_t{4} << 20;
// The credit that a piece with its header uses. A short piece costs the receiver about this much memory, so the credit also
// limits the number of messages: 32,768 that are not yet received. The sender waits then.
inline constexpr std::uint64_t kSmallestCharge = 128;
constexpr std::uint64_t charge_of(std::uint64_t length) { return length < kSmallestCharge ? kSmallestCharge : length; }
// The credit for a message that its receiver has not begun to take: two blocking sends to each other, or a receiver that expects
// another message, are detected before all of it is in flight. Over a far link half of the window, so that a message need not
// wait
// for an answer.
inline constexpr std::uint64_t kUnasked = 2 * kPieceSize;

// Messages from one member, outside of operations.
class InPair final {
 public:
  explicit InPair(ReceiveShare& share) : share_(share) {}
  InPair(const InPair&) = delete;
  InPair& operator=(const InPair&) = delete;
  ~InPair();

  struct Piece {
    std::byte* data = nullptr;  // the header, then bytes
    std::uint32_t length = 0;
    bool whole = false;
  };

  Result<std::byte*> place(const Frame& frame);
  // Null: the piece was dropped.
  void arrived(const Frame& frame, const std::byte* at);
  // The piece did not arrive, and comes again: as if it had not been placed.
  void unplace(const Frame& frame, const std::byte* at);

  // The header of a message of which some data has arrived, or null.
  [[nodiscard]] const MessageHeader* header_of(std::uint64_t message) const;
  // The bytes at that position, or null.
  [[nodiscard]] const Piece* piece_at(std::uint64_t message, std::uint64_t position) const;
  void drop_piece(std::uint64_t message, std::uint64_t position);
  // All messages up to this one have ended: further data of them is dropped.
  void end(std::uint64_t message);
  // Bytes of messages that the sender may be ahead: the sum of charge_of. Only grows.
  [[nodiscard]] std::uint64_t window() const { return window_; }
  void widen(std::uint64_t window) { window_ = window; }
  // The sum of charge_of over all pieces that are no longer kept, since the beginning: the sender's credit. Half of a piece
  // counts, too, until it is un-placed.
  [[nodiscard]] std::uint64_t released() const { return released_; }

 private:
  struct Message {
    MessageHeader header;
    bool known = false;
    std::map<std::uint64_t, Piece> pieces;  // by position
  };

  // Bytes of an entry of a map, with the pointers of its tree and the heading of its allocation: the peer chooses how many there
  // are.
  static constexpr std::size_t kNode = 48;
  static constexpr std::size_t kPieceEntry = sizeof(std::pair<const std::uint64_t, Piece>) + kNode;
  static constexpr std::size_t kMessageEntry = sizeof(std::pair<const std::uint64_t, Message>) + kNode;

  // The piece is in `messages_`.
  void free(const Piece& piece);
  // A piece that no message has any more is read no further. False: there is none at that place.
  bool let_go(const std::byte* at);

  ReceiveShare& share_;
  std::map<std::uint64_t, Message> messages_;
  std::vector<Piece> abandoned_;  // a socket still reads into them
  std::uint64_t ended_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t window_ = kPairCredit;
  std::uint64_t in_use_ = 0;  // the sum of charge_of over the pieces that arrived and are not released
};

}  // namespace seto::tcp
