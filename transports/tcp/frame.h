#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/status.h"

namespace seto::tcp {

// What goes over a link: a header of 64 bytes, then `length` bytes. Little-endian, as every machine that this library runs on.
//
// Every frame has a sequence number and acknowledges what came the other way: over several sockets the numbers tell what is still
// missing, and one day a link can take up where a socket broke off.
enum class FrameKind : std::uint8_t {
  open = 1,      // a communicator's streams from here on; the payload proves that the sender knows the secret of the link
  data,          // a part of a message of a stream
  credit,        // so many slices of that stream's operation have been taken
  progress,      // nothing but how far the sender is
  pair,          // a part of a message between two members: its letter, then bytes
  pair_taken,    // so many bytes of such messages have been taken; in position(), the last message that is being taken
  pair_refused,  // the receiver of that message expects another: its letter
  left,          // the sender has left: nothing more of it comes for this communicator
};
inline constexpr std::uint8_t kLastFrameKind = static_cast<std::uint8_t>(FrameKind::left);

inline constexpr std::uint32_t kFrameMagic = 0x0e70'5e00;  // and the kind
inline constexpr std::size_t kFrameLimit = std::size_t{256} << 10;

// The receiver is to say how far it is as soon as it has completed the operation: nothing of its own is on its way.
inline constexpr std::uint8_t kTellProgress = 1;

struct Frame {
  std::uint32_t magic = kFrameMagic;
  std::uint32_t length = 0;
  std::uint64_t sequence = 0;      // from 1
  std::uint64_t acknowledged = 0;  // all up to this one have come
  std::uint64_t circle = 0;        // whose streams
  std::uint64_t mark = 0;          // of a stream: the slice; of a pair: the number of the message, or bytes taken
  std::uint64_t done = 0;          // operations that the sender has completed
  std::uint32_t offset = 0;        // of these bytes in the message
  std::uint32_t size = 0;          // of the whole message
  std::uint32_t digest = 0;        // of the stream; of `open`: the member
  std::uint16_t port = 0;
  std::uint8_t group = 0;
  std::uint8_t flags = 0;

  [[nodiscard]] FrameKind kind() const { return static_cast<FrameKind>(magic & 0xff); }
  void set_kind(FrameKind kind) { magic = kFrameMagic | static_cast<std::uint8_t>(kind); }
  // Of a pair, whose messages may be larger than 32 bits say.
  [[nodiscard]] std::uint64_t position() const { return std::uint64_t{size} << 32 | offset; }
  void set_position(std::uint64_t position) {
    offset = static_cast<std::uint32_t>(position);
    size = static_cast<std::uint32_t>(position >> 32);
  }
  // It can be a header at all. Says nothing of the rest.
  [[nodiscard]] bool plausible() const {
    const std::uint32_t kind_bits = magic & 0xff;
    return (magic & ~0xffU) == kFrameMagic && kind_bits >= 1 && kind_bits <= kLastFrameKind && length <= kFrameLimit;
  }
};
static_assert(sizeof(Frame) == 64);

// What breaks a link: it came over it, and can be nothing.
inline Status garbage(const char* what) {
  return failure(Code::remote_error, "what came over its connection is garbage (%s): the connection is given up", what);
}

}  // namespace seto::tcp
