#pragma once

#include <string>
#include <string_view>

#include "src/command/run/event_loop.h"

namespace seto::command {

// Writes without blocking to a descriptor that stays in blocking mode, because other processes may share it. Bytes that do not
// fit are buffered.
class Sink final {
 public:
  Sink(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {}
  ~Sink() { loop_.forget(fd_); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::string_view bytes);
  // Blocks until all is written, the reader is gone, or the time has passed.
  void flush_within(int timeout_ms);

  // More is buffered than the producer should add to.
  [[nodiscard]] bool full() const { return waiting() > kEnough; }
  [[nodiscard]] bool empty() const { return waiting() == 0; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size() - offset_; }
  // There is no reader any more; output is dropped.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  static constexpr std::size_t kEnough = std::size_t{1} << 20;

  void flush();
  void watch_or_not();

  EventLoop& loop_;
  int fd_;
  std::string waiting_;
  std::size_t offset_ = 0;
  bool watched_ = false;
  bool broken_ = false;
};

}  // namespace seto::command
