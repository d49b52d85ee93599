#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/result.h"
#include "src/net/token.h"

namespace seto {

// A context of a process; never given twice by one process.
using ContextId = std::uint64_t;

// How two contexts prove to each other who they are before anything else is heard. One datagram each:
//   caller -> answerer: hello    (the answerer's token, the caller's token, both contexts)
//   answerer -> caller: welcome  (the caller's token, both contexts; the answerer's memory)
//   caller -> answerer: memory   (the caller's memory)
// or, instead of welcome, refusal: the answerer has run out of descriptors. Of one machine, so in the machine's byte order.
enum class HandshakeKind : std::uint32_t { hello = 1, welcome, memory, refusal };

struct HandshakeMessage {
  std::uint32_t magic = 0;
  HandshakeKind kind{};
  Token of_receiver{};
  Token of_sender{};
  ContextId caller = 0;
  ContextId answerer = 0;
};

// A hello that waits at the listener; nothing if these bytes are none or not meant for `token`.
[[nodiscard]] std::optional<HandshakeMessage> read_hello(const void* bytes, std::size_t size, const Token& token);

// A process's address: where it listens and its token.
struct ProcessAddress {
  std::string socket_name;
  Token token{};
};
[[nodiscard]] std::string encode(const ProcessAddress& address);
[[nodiscard]] Result<ProcessAddress> decode_address(const std::string& bytes);

// Sends or receives one message, with a descriptor if `fd` >= 0. The socket is non-blocking; these wait until the deadline.
[[nodiscard]] Status send_handshake(int socket, HandshakeMessage message, int fd, Deadline until);

struct ReceivedHandshake {
  HandshakeMessage message;
  Fd fd;
};
// Code::unavailable if this process had no descriptor left for the one that came.
[[nodiscard]] Result<ReceivedHandshake> receive_handshake(int socket, HandshakeKind kind, Deadline until);

}  // namespace seto
