#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "src/base/result.h"
#include "transports/tcp/frame.h"
#include "transports/tcp/receive_buffers.h"
#include "transports/transport.h"

namespace seto::tcp {

// Slices of one operation of a stream that its sender may have sent before the receiver has taken the first of them. Both ends
// compute it: of long messages few, of short ones many, so that a long pipe is filled without a word from the other end.
inline constexpr std::uint64_t kStreamCredit = std::uint64_t{4} << 20;  // bytes
inline constexpr std::uint64_t kMostAhead = 64;                         // slices
std::uint64_t slices_ahead(const StreamGeometry& geometry);

// Operations that a sender may be ahead of a receiver that only listens. Memory at the receiver pays for it.
inline constexpr std::uint64_t kMostOperations = 16;
std::uint64_t operations_ahead(const StreamGeometry& geometry);

// What has arrived of one stream, whether or not somebody has opened it here. The token holder's, or under the domain's lock.
class InStream final {
 public:
  explicit InStream(Landing& landing) : landing_(landing) {}
  InStream(const InStream&) = delete;
  InStream& operator=(const InStream&) = delete;
  ~InStream();

  // Operations that may want messages at once.
  static constexpr std::size_t kUnderWay = 2;

  struct Message {
    std::byte* data = nullptr;
    std::uint32_t size = 0;
    std::uint32_t got = 0;  // bytes that have come
    std::uint32_t digest = 0;
    std::uint64_t slice = 0;
    std::uint32_t promised = 0;  // bytes of frames whose header has come
    std::uint32_t pending = 0;   // frames of it that are being read into its memory
    bool there = false;          // some of it at least
    bool announced = false;
    bool placed = false;  // its memory is the caller's
  };

  // Where bytes of a message go. Null: nobody wants them.
  Result<std::byte*> place(const Frame& frame, std::uint64_t done);
  void arrived(const Frame& frame, const std::byte* at);

  // Whole, or null.
  Message* whole(Mark mark);
  // Its memory is free again.
  void drop(Mark mark);
  // What came of operations up to this one is not wanted any more.
  void forget_before(std::uint64_t operation);

  // Messages of that digest whose first byte has not come belong there.
  void want(const Placement& placement, std::uint32_t digest);
  // Where no message belongs any more. Who reads into it stops before the owner has it back.
  Placement displace(std::uint64_t operation);

 private:
  struct Operation {
    std::uint64_t number = 0;
    std::array<Message, kMostAhead> messages;
  };

  struct Wanted {
    Placement where;
    std::uint32_t digest = 0;
    std::uint64_t released = 0;  // slices: their places are the caller's again
  };

  // Of the caller, or of this stream. Null: there is none.
  void find_memory(Message& message, const Frame& frame);
  Operation* operation_of_mark(Mark mark);
  void clear(Operation& operation);
  void free(Message& message);

  Landing& landing_;
  std::array<std::unique_ptr<Operation>, kMostOperations> operations_;
  std::array<Wanted, kUnderWay> wanted_;
  std::vector<Message> abandoned_;  // into which a socket still reads
};

// Messages from one member, beside operations.
class InPair final {
 public:
  explicit InPair(Landing& landing) : landing_(landing) {}
  InPair(const InPair&) = delete;
  InPair& operator=(const InPair&) = delete;
  ~InPair();

  struct Piece {
    std::byte* data = nullptr;  // the letter, then bytes
    std::uint32_t length = 0;
    bool whole = false;
  };

  Result<std::byte*> place(const Frame& frame);
  void arrived(const Frame& frame, const std::byte* at);

  // The letter of a message of which something has come, or null.
  [[nodiscard]] const Letter* letter_of(std::uint64_t message) const;
  // The bytes at that position, or null.
  [[nodiscard]] const Piece* piece_at(std::uint64_t message, std::uint64_t position) const;
  void drop_piece(std::uint64_t message, std::uint64_t position);
  // All up to this one are over: what still comes of them is dropped.
  void end(std::uint64_t message);
  // Bytes of pieces that are no longer kept, since the beginning: the sender's credit.
  [[nodiscard]] std::uint64_t released() const { return released_; }

 private:
  struct Message {
    Letter letter;
    bool known = false;
    std::map<std::uint64_t, Piece> pieces;  // by position
  };

  void free(const Piece& piece);

  Landing& landing_;
  std::map<std::uint64_t, Message> messages_;
  std::vector<Piece> abandoned_;  // into which a socket still reads
  std::uint64_t ended_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t in_use_ = 0;  // bytes that came and are not released
};

// A letter as it travels in front of a piece.
inline constexpr std::size_t kLetterSize = 24;
void put_letter(std::byte* at, const Letter& letter);
Letter letter_in(const std::byte* at);

// Bytes that a sender may have on their way to one member, in pieces of at most this size.
inline constexpr std::size_t kPieceSize = std::size_t{128} << 10;
inline constexpr std::uint64_t kPairCredit = std::uint64_t{4} << 20;
// Of a message that its receiver has not begun to take.
inline constexpr std::uint64_t kUnasked = 2 * kPieceSize;

}  // namespace seto::tcp
