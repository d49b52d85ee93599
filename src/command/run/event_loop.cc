#include "src/command/run/event_loop.h"

#include <poll.h>

#include <utility>
#include <vector>

namespace seto::command {

void EventLoop::watch(int fd, short events, std::function<void()> handler) {
  watched_[fd] = {events, ++generation_, std::move(handler)};
}

void EventLoop::run_once(int timeout_ms) {
  std::vector<pollfd> entries;
  std::vector<std::uint64_t> generations;
  for (const auto& [fd, watched] : watched_) {
    entries.push_back({fd, watched.events, 0});
    generations.push_back(watched.generation);
  }
  if (poll(entries.data(), entries.size(), timeout_ms) <= 0) return;
  for (std::size_t index = 0; index < entries.size(); ++index) {
    if (entries[index].revents == 0) continue;
    const auto found = watched_.find(entries[index].fd);
    if (found == watched_.end() || found->second.generation != generations[index]) continue;
    const std::function<void()> handler = found->second.handler;  // a copy: the handler may remove itself
    handler();
  }
}

}  // namespace seto::command
