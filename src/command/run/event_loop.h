#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace seto::command {

// Descriptors and the handlers to call when they are ready. One thread; a handler may call watch() and forget().
class EventLoop final {
 public:
  // `events` are those of poll(2). A hang-up calls the handler too.
  void watch(int fd, short events, std::function<void()> handler);
  void forget(int fd) { watched_.erase(fd); }
  // Waits at most this long (negative: until an event), then calls the handlers of ready descriptors.
  void run_once(int timeout_ms);

 private:
  struct Watched {
    short events;
    std::uint64_t generation;  // detects that the number was closed and reused before its event is handled
    std::function<void()> handler;
  };
  std::map<int, Watched> watched_;
  std::uint64_t generation_ = 0;
};

}  // namespace seto::command
