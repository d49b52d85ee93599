#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace seto {

// The frames of a control channel, after the handshake. Little-endian: kind, size of the bytes after the head, from, key, to.
enum class ControlFrameKind : std::uint16_t {
  ping = 1,  // answered at once; the key of a ping and of a pong: so many counted frames have arrived
  pong,
  ask,         // asks the handler (key, to) to answer the handler (key, from)
  message,     // bytes for the handler (key, to)
  no_handler,  // the answer to an ask for a handler that does not exist
  propose,     // the caller proposes to share this channel for the contexts in the bytes, in the attempt `key`
  agree,       // the answerer agrees to the proposal
  refuse,      // the answerer refuses the proposal; the reason follows the contexts
  close,       // the sender closes this channel; its process continues
  peer_lost,   // the sender considers the receiver lost; the bytes say why
  // Frames of the overlay of the attempt `key`, between members `from` and `to` (src/control/overlay).
  relayed,      // a message of one member to another
  edge_lost,    // `from` has given up its peer `to`; the bytes say why
  member_left,  // `from` takes no more part
  edge_over,    // the sender passes nothing on any more: the edge between the two ends
  // Decision 32. The key: so many counted frames have arrived at the sender.
  heard,
  resumed,  // the first frame of both ends over a connection that replaces another one
};

// Counted frames are those that arrive once and in order also where the connection of a channel is replaced.
[[nodiscard]] constexpr bool is_counted(ControlFrameKind kind) {
  using Kind = ControlFrameKind;
  return kind != Kind::ping && kind != Kind::pong && kind != Kind::heard && kind != Kind::resumed;
}

inline constexpr std::size_t kFrameLimit = 4096;
inline constexpr std::size_t kFrameHeadSize = 24;

struct ControlFrame {
  ControlFrameKind kind{};
  std::uint32_t from = 0;
  std::uint64_t key = 0;
  std::uint32_t to = 0;
  std::string_view bytes{};
};

[[nodiscard]] std::string encode(const ControlFrame& frame);

// Splits received bytes into frames; buffers at most one frame.
class ControlFrameReader final {
 public:
  // Calls back for each whole frame, whose bytes are valid during the call. Fails for malformed input; unusable after that.
  [[nodiscard]] Status feed(std::string_view bytes, const std::function<void(const ControlFrame&)>& take);

 private:
  [[nodiscard]] std::size_t wanted() const;

  std::string part_;
};

}  // namespace seto
