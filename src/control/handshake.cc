#include "src/control/handshake.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/check.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::uint32_t kMagic = 0x5e70ee71;
constexpr std::uint32_t kAddressMagic = 0x5e70add1;

struct AddressLayout {
  std::uint32_t magic;
  std::uint32_t unused;
  Token token;
  char socket_name[40];  // ends in a zero
};

Status peer_ended() { return failure(Code::remote_error, "its process ended, or gave up, while the two were connecting"); }

}  // namespace

std::string encode(const ProcessAddress& address) {
  AddressLayout layout{};
  layout.magic = kAddressMagic;
  layout.token = address.token;
  SETO_CHECK(address.socket_name.size() < sizeof layout.socket_name);
  std::memcpy(layout.socket_name, address.socket_name.data(), address.socket_name.size());
  return {reinterpret_cast<const char*>(&layout), sizeof layout};
}

Result<ProcessAddress> decode_address(const std::string& bytes) {
  AddressLayout layout;
  if (bytes.size() != sizeof layout) {
    return failure(Code::remote_error, "a peer's address has %zu bytes instead of %zu: does the peer have the same version?",
                   bytes.size(), sizeof layout);
  }
  std::memcpy(&layout, bytes.data(), sizeof layout);
  const std::size_t length = strnlen(layout.socket_name, sizeof layout.socket_name);
  if (layout.magic != kAddressMagic || length == 0 || length == sizeof layout.socket_name) {
    return failure(Code::remote_error, "a peer's address is malformed: does the peer have the same version?");
  }
  return ProcessAddress{std::string(layout.socket_name, length), layout.token};
}

std::optional<HandshakeMessage> read_hello(const void* bytes, std::size_t size, const Token& token) {
  HandshakeMessage message;
  if (size != sizeof message) return std::nullopt;
  std::memcpy(&message, bytes, sizeof message);
  if (message.magic != kMagic) return std::nullopt;
  if (message.kind != HandshakeKind::hello && message.kind != HandshakeKind::probe) return std::nullopt;
  if (!equal(message.of_receiver, token)) return std::nullopt;
  return message;
}

void put_text(HandshakeMessage& refusal, const Status& reason) {
  refusal.code = static_cast<std::uint32_t>(reason.code());
  const std::size_t length = std::min(reason.text().size(), sizeof refusal.text - 1);
  std::memcpy(refusal.text, reason.text().data(), length);
  refusal.text[length] = '\0';
}

Status reason_of(const HandshakeMessage& refusal) {
  std::string text(refusal.text, strnlen(refusal.text, sizeof refusal.text));
  for (char& header : text)
    if (header < ' ' || header > '~') header = '?';
  const bool gave_up = refusal.code == static_cast<std::uint32_t>(Code::aborted);
  return {gave_up ? Code::aborted : Code::remote_error, std::move(text)};
}

Status send_handshake(int socket, HandshakeMessage message, std::span<const int> descriptors, Deadline until) {
  message.magic = kMagic;
  while (send_packet(socket, std::as_bytes(std::span(&message, 1)), descriptors) < 0) {
    if (errno == EPIPE || errno == ECONNRESET) return peer_ended();
    if (errno == EAGAIN) {
      SETO_TRY(wait_for(socket, POLLOUT, until));
    } else if (errno == ETOOMANYREFS) {
      return failure(Code::unavailable, "too many descriptors are under way to peers that do not read; raise ulimit -n");
    } else if (errno != EINTR) {
      return socket_failure("cannot send to the peer");
    }
  }
  return {};
}

Result<ReceivedHandshake> receive_handshake(int socket, HandshakeKind kind, Deadline until) {
  ReceivedHandshake received;
  ReceivedPacket packet;
  do {
    SETO_TRY(wait_for(socket, POLLIN, until));
    packet = receive_packet(socket, std::as_writable_bytes(std::span(&received.message, 1)));
  } while (packet.size < 0 && (errno == EAGAIN || errno == EINTR));
  if (packet.size == 0 || (packet.size < 0 && errno == ECONNRESET)) return peer_ended();
  if (packet.size < 0) return socket_failure("cannot receive from the peer");
  received.descriptors = std::move(packet.descriptors);
  if (static_cast<std::size_t>(packet.size) != sizeof received.message || received.message.magic != kMagic || packet.is_cut) {
    return failure(Code::remote_error, "it sent data that is not a handshake: does it have the same version?");
  }
  if (received.message.kind == HandshakeKind::refusal) return received;
  if (received.message.kind != kind) return failure(Code::remote_error, "it sent its handshake in the wrong order");
  if (packet.lacks_descriptors) {
    errno = EMFILE;
    return socket_failure("cannot receive its descriptors");
  }
  return received;
}

}  // namespace seto
