// Bytes of a link's sockets that TLS holds, in either direction.

#include <algorithm>
#include <cerrno>

#include "transports/tcp/link/link.h"

namespace seto::tcp {

bool Link::holds_encrypted() const {
  return encrypted_ && std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket->fd.unsent() > 0; });
}

bool Link::pending() const {
  return encrypted_ && std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket->fd.pending(); });
}

// False: the socket has no room for it.
bool Link::flush_encrypted(Socket& socket) {
  if (socket.fd.flush()) return true;
  if (errno == EAGAIN) return false;
  socket_failed(socket, errno);
  return true;
}

}  // namespace seto::tcp
