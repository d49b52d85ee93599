#include "src/command/run/sink.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/clock.h"

namespace seto::command {

void Sink::write(std::string_view bytes) {
  if (broken_) return;
  waiting_.append(bytes);
  flush();
}

// A pipe that poll() reports as writable accepts PIPE_BUF bytes without blocking.
void Sink::flush() {
  while (!empty() && !broken_) {
    pollfd entry{fd_, POLLOUT, 0};
    if (poll(&entry, 1, 0) <= 0) break;
    const ssize_t written = ::write(fd_, waiting_.data() + offset_, std::min<std::size_t>(waiting_.size() - offset_, PIPE_BUF));
    if (written >= 0) {
      offset_ += static_cast<std::size_t>(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      broken_ = true;
    }
  }
  if (empty() || broken_) {
    waiting_.clear();
    offset_ = 0;
  } else if (full()) {
    waiting_.erase(0, offset_);
    offset_ = 0;
  }
  watch_or_not();
}

void Sink::watch_or_not() {
  if (empty() == !watched_) return;
  watched_ = !empty();
  if (watched_) {
    loop_.watch(fd_, POLLOUT, [this] { flush(); });
  } else {
    loop_.forget(fd_);
  }
}

void Sink::flush_within(int timeout_ms) {
  const Deadline until = Deadline::after_ms(static_cast<std::uint64_t>(timeout_ms));
  flush();
  while (!empty() && !until.passed()) {
    pollfd entry{fd_, POLLOUT, 0};
    poll(&entry, 1, until.remaining_ms());
    flush();
  }
}

}  // namespace seto::command
