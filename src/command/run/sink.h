#pragma once

#include <string>
#include <string_view>

#include "src/command/run/event_loop.h"

namespace seto::command {

// Writes to a descriptor that others may share, so that it stays blocking, without ever blocking: what does not fit waits here.
class Sink final {
 public:
  Sink(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {}
  ~Sink() { loop_.forget(fd_); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::string_view bytes);
  // Blocks until all is written, the reader is gone, or so much time has passed.
  void flush_within(int timeout_ms);

  // More waits than whoever produces it should go on with.
  [[nodiscard]] bool full() const { return waiting() > kEnough; }
  [[nodiscard]] bool empty() const { return waiting() == 0; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size() - offset_; }
  // Nobody reads any more: what is written is dropped.
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
