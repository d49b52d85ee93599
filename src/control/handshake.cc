#include "src/control/handshake.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

union Control {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(kDescriptorsAtOnce * sizeof(int))];
};

// Takes every received descriptor, expected or not, so that none leaks.
std::vector<Fd> take_descriptors(msghdr& message) {
  std::vector<Fd> taken;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(header) + at, sizeof number);
      taken.emplace_back(number);
    }
  }
  return taken;
}

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
  SETO_CHECK(descriptors.size() <= kDescriptorsAtOnce);
  message.magic = kMagic;
  iovec part{&message, sizeof message};
  Control control{};
  msghdr datagram{};
  datagram.msg_iov = &part;
  datagram.msg_iovlen = 1;
  if (!descriptors.empty()) {
    datagram.msg_control = control.bytes;
    datagram.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&datagram);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(socket, &datagram, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
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
  iovec part{&received.message, sizeof received.message};
  Control control{};
  msghdr datagram{};
  ssize_t got = -1;
  do {
    SETO_TRY(wait_for(socket, POLLIN, until));
    datagram = {};
    datagram.msg_iov = &part;
    datagram.msg_iovlen = 1;
    datagram.msg_control = control.bytes;
    datagram.msg_controllen = sizeof control.bytes;
    got = recvmsg(socket, &datagram, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && (errno == EAGAIN || errno == EINTR));
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return peer_ended();
  if (got < 0) return socket_failure("cannot receive from the peer");
  received.descriptors = take_descriptors(datagram);
  if (static_cast<std::size_t>(got) != sizeof received.message || received.message.magic != kMagic ||
      (datagram.msg_flags & MSG_TRUNC) != 0) {
    return failure(Code::remote_error, "it sent data that is not a handshake: does it have the same version?");
  }
  if (received.message.kind == HandshakeKind::refusal) return received;
  if (received.message.kind != kind) return failure(Code::remote_error, "it sent its handshake in the wrong order");
  if ((datagram.msg_flags & MSG_CTRUNC) != 0) {
    errno = EMFILE;
    return socket_failure("cannot receive its descriptors");
  }
  return received;
}

}  // namespace seto
