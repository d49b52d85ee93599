#include "transports/shm/local_notice.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace seto {
namespace {

constexpr std::size_t kOfferSize = 1;
constexpr std::size_t kMappedSize = 2;
constexpr std::size_t kEndedSize = sizeof(ContextId);
static_assert(kEndedSize > kMappedSize);

// Room for the descriptor of one notice. The kernel closes those that a malformed notice has beyond that.
union Control {
  cmsghdr alignment;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

bool send_bytes(int socket, const void* bytes, std::size_t size) {
  return send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

Fd descriptor_of(msghdr& message) {
  Fd found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || part->cmsg_len < CMSG_LEN(sizeof(int))) continue;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(part), sizeof number);
    found = Fd(number);
  }
  return found;
}

}  // namespace

LocalNotice receive_notice(int socket) {
  std::array<char, kEndedSize + 1> bytes{};  // one more, so that a longer datagram is detected
  iovec place{bytes.data(), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  LocalNotice notice;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    notice.kind = LocalNotice::Kind::nothing_more;
    return notice;
  }
  if (got <= 0) {
    notice.kind = LocalNotice::Kind::process_ended;
    return notice;
  }
  notice.memory = descriptor_of(message);
  if (got == kEndedSize) {
    notice.kind = LocalNotice::Kind::context_ended;
    std::memcpy(&notice.context, bytes.data(), sizeof notice.context);
  } else if (got == kOfferSize) {
    notice.kind = LocalNotice::Kind::memory_offered;
  } else if (got == kMappedSize) {
    notice.kind = LocalNotice::Kind::memory_mapped;
  }
  return notice;
}

bool send_context_ended(int socket, ContextId context) { return send_bytes(socket, &context, kEndedSize); }

bool send_memory_mapped(int socket) {
  constexpr std::array<char, kMappedSize> kNothing{};
  return send_bytes(socket, kNothing.data(), kNothing.size());
}

bool send_memory(int socket, int memory) {
  char nothing = 0;
  iovec place{&nothing, kOfferSize};
  Control control{};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof memory);
  std::memcpy(CMSG_DATA(part), &memory, sizeof memory);
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(kOfferSize);
}

}  // namespace seto
