#include "tests/support/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/base/fd.h"

namespace seto::testing {
namespace {

// The held ports are mutable state of the process: sockets that are bound and do not listen.
void hold(Fd fd) {
  static std::mutex mutex;
  static std::vector<Fd> held;
  const std::lock_guard lock(mutex);
  held.push_back(std::move(fd));
}

Fd reusable_socket(int family) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd;
}

// Holds the same port of ::1, since a job at localhost listens there too. Returns false if another process uses it; a machine
// without IPv6 has nothing to hold.
bool hold_ipv6(std::uint16_t port) {
  Fd fd = reusable_socket(AF_INET6);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  address.sin6_port = htons(port);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return errno != EADDRINUSE;
  hold(std::move(fd));
  return true;
}

}  // namespace

std::uint16_t free_port() {
  for (int turn = 0; turn < 100; ++turn) {
    Fd fd = reusable_socket(AF_INET);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) break;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
    hold(std::move(fd));
    if (hold_ipv6(ntohs(address.sin_port))) return ntohs(address.sin_port);
  }
  throw std::runtime_error("no port");
}

}  // namespace seto::testing
