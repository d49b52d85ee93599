#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace seto::command {

// Descriptors and what to do when they are ready. One thread; a handler may watch and forget.
class EventLoop final {
 public:
  // `events` of poll(2). A hang-up calls the handler too.
  void watch(int fd, short events, std::function<void()> handler);
  void forget(int fd) { watched_.erase(fd); }
  // Waits at most so long (negative: until something happens), then calls the handlers of what is ready.
  void run_once(int timeout_ms);

 private:
  struct Watched {
    short events;
    std::uint64_t generation;  // the number may belong to another file by the time its event is looked at
    std::function<void()> handler;
  };
  std::map<int, Watched> watched_;
  std::uint64_t generation_ = 0;
};

}  // namespace seto::command
