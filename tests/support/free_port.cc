#include "tests/support/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

}  // namespace

std::uint16_t free_port() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) throw std::runtime_error("no port");
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  hold(std::move(fd));
  return ntohs(address.sin_port);
}

}  // namespace seto::testing
