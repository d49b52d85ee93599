#include "src/control/doorbell.h"

#include <sys/socket.h>

#include <cerrno>

namespace seto {

bool ring(int socket) {
  const char one = 0;
  ssize_t sent = 0;
  do {
    sent = send(socket, &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0 || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM;
}

bool drain(int socket) {
  while (true) {
    char one = 0;
    const ssize_t got = recv(socket, &one, sizeof one, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

}  // namespace seto
