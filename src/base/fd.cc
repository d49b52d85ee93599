#include "src/base/fd.h"

#include <unistd.h>

#include <cerrno>

namespace seto {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    close();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void Fd::close() {
  if (number_ < 0) return;
  // Callers word a failure from errno after cleaning up. EINTR is not retried: on Linux the descriptor is gone by then.
  const int error = errno;
  ::close(number_);
  number_ = -1;
  errno = error;
}

}  // namespace seto
