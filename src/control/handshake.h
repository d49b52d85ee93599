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
#include "src/base/types.h"
#include "src/net/token.h"

namespace seto {

// The handshake of two contexts of one machine: each proves its identity before any other data is accepted. One datagram each:
//   caller -> answerer: hello   (the answerer's token, the caller's token, both contexts)
//   answerer -> caller: accept  (the caller's token, both contexts)
// Then both send their descriptors in turn, the answerer first, as many as one datagram carries, until all are sent. Instead of
// accept the answerer may send a refusal, whose text says why: it is out of descriptors, or its context has given up.
// An answerer that waits for a connection sends a probe to ask whether it will come: the reply is a refusal, or the end of the
// socket if the connection may still come. Both ends are on one machine, so all numbers have the machine's byte order.
enum class HandshakeKind : std::uint32_t { hello = 1, accept, descriptors, refusal, probe };

// The size of a refusal's text, terminating zero included.
inline constexpr std::size_t kRefusalSize = 240;

struct HandshakeMessage {
  std::uint32_t magic = 0;
  HandshakeKind kind{};
  Token of_receiver{};
  Token of_sender{};
  ContextId caller = 0;
  ContextId answerer = 0;
  AttemptId attempt = 0;
  std::uint32_t descriptors = 0;  // how many the sender sends in total
  std::uint32_t code = 0;         // in a refusal: a seto::Code
  char text[kRefusalSize] = {};
};

// Writes the reason into a refusal; cuts a text that is too long.
void put_text(HandshakeMessage& refusal, const Status& reason);
// The reason in a refusal. Received data may be garbage: replaces unprintable characters and limits the code to those of a peer.
[[nodiscard]] Status reason_of(const HandshakeMessage& refusal);

// Parses a received hello or probe; nothing if the bytes are neither, or are not meant for `token`.
[[nodiscard]] std::optional<HandshakeMessage> read_hello(const void* bytes, std::size_t size, const Token& token);

// The address of a process: its socket name and its token.
struct ProcessAddress {
  std::string socket_name;
  Token token{};
};
[[nodiscard]] std::string encode(const ProcessAddress& address);
[[nodiscard]] Result<ProcessAddress> decode_address(const std::string& bytes);

// Send or receive one message with at most kDescriptorsAtOnce descriptors. The socket is non-blocking; these functions wait until
// the deadline.
[[nodiscard]] Status send_handshake(int socket, HandshakeMessage message, std::span<const int> descriptors, Deadline until);

struct ReceivedHandshake {
  HandshakeMessage message;
  std::vector<Fd> descriptors;
};
// Code::unavailable if this process has no free descriptors for the received ones. Returns a refusal instead of any kind; the
// calling code checks its sender.
[[nodiscard]] Result<ReceivedHandshake> receive_handshake(int socket, HandshakeKind kind, Deadline until);

}  // namespace seto
