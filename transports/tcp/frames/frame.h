#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/far_link.h"
#include "src/base/status.h"

namespace seto::tcp {

// One unit on a connection: a header of 64 bytes, then a payload of `length` bytes. Little-endian, as is every machine that this
// library runs on.
//
// Every frame has a sequence number and acknowledges the frames of the other direction. Over several sockets the numbers tell
// which frames are missing.
enum class FrameKind : std::uint8_t {
  open = 1,      // enables a communicator's frames; the payload proves that the sender knows the secret of the connection
  data,          // a part of a message of a stream
  credit,        // the receiver has taken the slices below `mark` of that stream, and accepts `offset` more
  progress,      // `done`: the number of operations that the sender has completed; with kTellProgress also a question
  pair,          // a part of a message between two members: its header, then bytes
  pair_taken,    // the receiver has taken so many bytes of such messages; position(): the last message it has begun to take
  pair_refused,  // the receiver of that message expects another one: the header of that
  left,          // the sender has left the communicator: this is its last frame for it
  window,        // the receiver accepts `mark` bytes at once of each operation of that stream, or of messages (kOfMessages)
  heard,         // only `acknowledged`: belongs to the connection itself
  rate,          // the connection carries `mark` bytes a second from the sender, whose round trip is `size` us; also its own
  sockets,       // the sender wants `mark` sockets to be open; also its own
  padding,       // nothing: its bytes widen the window of a socket, or ask whether its path works; also its own
  place,         // where rails may write payloads of a stream: PlaceWords (places.h)
};
inline constexpr std::uint8_t kLastFrameKind = static_cast<std::uint8_t>(FrameKind::place);

// Frames of one connection travel over at most so many sockets.
inline constexpr std::uint32_t kMostSockets = kMostSocketsOfAPair;

inline constexpr std::uint32_t kFrameMagic = 0x0e70'5e00;  // and the kind
inline constexpr std::size_t kFrameLimit = std::size_t{256} << 10;
// The payload of a long frame where a connection has several sockets.
inline constexpr std::size_t kStripe = std::size_t{64} << 10;

// Asks the receiver to report when it has completed the operation (the one of `mark`), because it sends no data that would carry
// the number.
inline constexpr std::uint8_t kTellProgress = 1;
// In a window: it is that of messages between two members.
inline constexpr std::uint8_t kOfMessages = 2;
// In a frame of data: the sender keeps its memory until it is acknowledged, so the receiver tells at once that it has come.
inline constexpr std::uint8_t kTellHeard = 2;
// The payload does not follow: a rail has written it to the place that was told for it.
inline constexpr std::uint8_t kInPlace = 4;
// The frame comes again.
inline constexpr std::uint8_t kAgain = 8;
// The rail of that attempt has taken the payload for its place, and may still write it there. Attempts that are 15 apart look
// alike: then a rail is ended that need not be.
constexpr std::uint8_t written_by(std::uint32_t attempt) { return static_cast<std::uint8_t>(((attempt - 1) % 15 + 1) << 4); }
inline constexpr std::uint8_t kWriter = 0xf0;
// A frame that comes again may differ in these.
inline constexpr std::uint8_t kOfThisSending = kInPlace | kAgain | kWriter;

struct Frame {
  std::uint32_t magic = kFrameMagic;
  std::uint32_t length = 0;
  std::uint64_t sequence = 0;      // from 1
  std::uint64_t acknowledged = 0;  // all frames up to this one have arrived
  std::uint64_t peer_group = 0;    // the communicator
  std::uint64_t mark = 0;          // stream: the slice; pair: the number of the message, or bytes taken
  std::uint64_t done = 0;          // operations that the sender has completed
  std::uint32_t offset = 0;        // of the payload in the message; credit: slices
  std::uint32_t size = 0;          // of the whole message
  std::uint32_t digest = 0;        // of the stream; open: the member
  std::uint16_t port = 0;
  std::uint8_t group = 0;
  std::uint8_t flags = 0;

  [[nodiscard]] FrameKind kind() const { return static_cast<FrameKind>(magic & 0xff); }
  void set_kind(FrameKind kind) { magic = kFrameMagic | static_cast<std::uint8_t>(kind); }
  // The offset in a message of a pair, which may need more than 32 bits.
  [[nodiscard]] std::uint64_t position() const { return std::uint64_t{size} << 32 | offset; }
  void set_position(std::uint64_t position) {
    offset = static_cast<std::uint32_t>(position);
    size = static_cast<std::uint32_t>(position >> 32);
  }
  // Whether these bytes can be a header. The other fields are checked later.
  [[nodiscard]] bool plausible() const {
    const std::uint32_t kind_bits = magic & 0xff;
    return (magic & ~0xffU) == kFrameMagic && kind_bits >= 1 && kind_bits <= kLastFrameKind && length <= kFrameLimit;
  }
};
static_assert(sizeof(Frame) == 64);

// The link itself reads its payload, though it is of a communicator and has a number.
inline bool is_for_link(const Frame& frame) { return frame.kind() == FrameKind::open || frame.kind() == FrameKind::place; }

// Malformed input. The connection is closed.
inline Status garbage(const char* what) {
  return failure(Code::remote_error, "what came over its connection is garbage (%s): the connection is given up", what);
}

}  // namespace seto::tcp
