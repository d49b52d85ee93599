#include "src/net/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "src/base/check.h"

namespace seto {
namespace {

struct Address {
  sockaddr_un value{};
  socklen_t size = 0;
};

Address abstract_address(const std::string& name) {
  Address address;
  SETO_CHECK(!name.empty() && name.size() + 1 <= sizeof address.value.sun_path);
  address.value.sun_family = AF_UNIX;
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

int type_of(SocketKind kind) { return kind == SocketKind::stream ? SOCK_STREAM : SOCK_SEQPACKET; }

union DescriptorsRoom {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(kDescriptorsAtOnce * sizeof(int))];
};

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

// The longest wait of the kernel for room in the queue of the listener: connect(2) has no other deadline for unix sockets.
void set_connect_timeout(int fd, Deadline until) {
  const int left = std::max(1, until.wait_ms());
  timeval timeout{};
  timeout.tv_sec = left / 1000;
  timeout.tv_usec = (left % 1000) * 1000;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

}  // namespace

Status socket_failure(const char* what) {
  const int error = errno;
  if (error == EMFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return failure(Code::unavailable, "%s: this process is out of file descriptors (its limit is %llu); raise ulimit -n", what,
                   static_cast<unsigned long long>(limit.rlim_cur));
  }
  if (error == ENFILE) {
    return failure(Code::unavailable, "%s: the machine is out of file descriptors; raise sysctl fs.file-max", what);
  }
  errno = error;
  return system_failure(Code::unavailable, "%s", what);
}

Result<PrivateFd> listen_local(const std::string& name, SocketKind kind) {
  PrivateFd fd(Fd(socket(AF_UNIX, type_of(kind) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd.valid()) return socket_failure("cannot open a local socket");
  const Address address = abstract_address(name);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size) != 0) {
    if (errno == EADDRINUSE)
      return failure(Code::invalid_usage, "another process listens at local socket @%s already", name.c_str());
    return socket_failure("cannot name a local socket");
  }
  if (listen(fd.get(), SOMAXCONN) != 0) return socket_failure("cannot listen on a local socket");
  return fd;
}

PrivateFd accept_local(const PrivateFd& listener) {
  return PrivateFd(Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

PrivateFd spare_descriptor() { return PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

Result<PrivateFd> connect_local(const std::string& name, SocketKind kind, Deadline until) {
  PrivateFd fd(Fd(socket(AF_UNIX, type_of(kind) | SOCK_CLOEXEC, 0)));
  if (!fd.valid()) return socket_failure("cannot open a local socket");
  const Address address = abstract_address(name);
  int answer = 0;
  do {
    set_connect_timeout(fd.get(), until);
    answer = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size);
  } while (answer != 0 && (errno == EINTR || errno == EAGAIN) && !until.passed());
  if (answer != 0) {
    if (errno == ECONNREFUSED) return failure(Code::remote_error, "no process listens at local socket @%s", name.c_str());
    if (errno == EAGAIN || errno == EINTR) return failure(Code::timeout, "local socket @%s did not accept", name.c_str());
    return socket_failure("cannot connect a local socket");
  }
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) return socket_failure("cannot set up a local socket");
  return fd;
}

ssize_t send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  SETO_CHECK(descriptors.size() <= kDescriptorsAtOnce);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  DescriptorsRoom room{};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  if (!descriptors.empty()) {
    packet.msg_control = room.bytes;
    packet.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ReceivedPacket receive_packet(int socket, std::span<std::byte> bytes) {
  iovec part{bytes.data(), bytes.size()};
  DescriptorsRoom room{};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  packet.msg_control = room.bytes;
  packet.msg_controllen = sizeof room.bytes;
  ReceivedPacket received;
  received.size = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received.size < 0) return received;
  received.descriptors = take_descriptors(packet);
  received.is_cut = (packet.msg_flags & MSG_TRUNC) != 0;
  received.lacks_descriptors = (packet.msg_flags & MSG_CTRUNC) != 0;
  return received;
}

Status check_same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return socket_failure("cannot read the user of a local socket's peer");
  if (peer.uid != geteuid()) {
    return failure(Code::remote_error, "process %d at a local socket runs as user %u, not as %u like this one", peer.pid,
                   peer.uid, geteuid());
  }
  return {};
}

Status wait_for(int fd, short events, Deadline until) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, until.wait_ms());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_failure(Code::internal, "poll failed");
    if (ready <= 0 && until.passed()) return failure(Code::timeout, "a local socket was silent until the deadline");
  }
}

}  // namespace seto
