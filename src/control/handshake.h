#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/result.h"
#include "src/net/token.h"

namespace seto {

// A context of a process; never given twice by one process.
using ContextId = std::uint64_t;

// One making of a communicator: the same number on all of its ranks, another one for every other.
using AttemptId = std::uint64_t;

// How two contexts prove to each other who they are before anything else is heard. One datagram each:
//   caller -> answerer: hello    (the answerer's token, the caller's token, both contexts)
//   answerer -> caller: welcome  (the caller's token, both contexts)
// and then gifts in turn, the answerer first: so many descriptors of its own as one datagram carries, until both have given all;
// or, instead of welcome, refusal: the answerer has run out of descriptors, or its context has given up, and the text says why.
// An answerer that waits for a call asks with a question whether it will come: a refusal, or the end of the socket if it may.
// Of one machine, so in the machine's byte order.
enum class HandshakeKind : std::uint32_t { hello = 1, welcome, gifts, refusal, question };

// Of a refusal's text, its end included.
inline constexpr std::size_t kRefusalSize = 240;

struct HandshakeMessage {
  std::uint32_t magic = 0;
  HandshakeKind kind{};
  Token of_receiver{};
  Token of_sender{};
  ContextId caller = 0;
  ContextId answerer = 0;
  AttemptId attempt = 0;
  std::uint32_t gifts = 0;  // that its sender gives in all
  std::uint32_t code = 0;   // of a refusal: seto::Code
  char text[kRefusalSize] = {};
};

// As a refusal carries it: cut where there is no room.
void put_text(HandshakeMessage& refusal, const Status& reason);
// What came may be garbage: letters only, and a code that is one of a peer.
[[nodiscard]] Status reason_of(const HandshakeMessage& refusal);

// A hello, or a question, that waits at the listener; nothing if these bytes are none or not meant for `token`.
[[nodiscard]] std::optional<HandshakeMessage> read_hello(const void* bytes, std::size_t size, const Token& token);

// A process's address: where it listens and its token.
struct ProcessAddress {
  std::string socket_name;
  Token token{};
};
[[nodiscard]] std::string encode(const ProcessAddress& address);
[[nodiscard]] Result<ProcessAddress> decode_address(const std::string& bytes);

// Descriptors that one message carries at most.
inline constexpr std::size_t kGiftsAtOnce = 128;

// Sends or receives one message, with descriptors if there are. The socket is non-blocking; these wait until the deadline.
[[nodiscard]] Status send_handshake(int socket, HandshakeMessage message, std::span<const int> gifts, Deadline until);

struct ReceivedHandshake {
  HandshakeMessage message;
  std::vector<Fd> gifts;
};
// Code::unavailable if this process had no descriptors left for those that came. A refusal comes instead of any kind: the caller
// checks who sent it.
[[nodiscard]] Result<ReceivedHandshake> receive_handshake(int socket, HandshakeKind kind, Deadline until);

}  // namespace seto
