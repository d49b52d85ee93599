#include <list>
#include <memory>
#include <mutex>

#include "src/base/fork.h"
#include "src/bootstrap/rendezvous_server.h"

namespace seto {
namespace {

// The rendezvous of this process that have not ended. Mutable state of the process: they must be ended and joined at exit, and
// nobody else outlives the calls that make ids. Never destroyed, so that late calls find it alive.
struct Servers {
  const std::uint32_t generation = fork_generation();
  std::mutex mutex;
  bool exiting = false;
  std::list<std::unique_ptr<RendezvousServer>> running;
};

std::atomic<Servers*> present_servers{nullptr};

// In a forked child the parent's servers have no threads, and their lock may be held for ever: the child starts afresh.
Servers& servers() {
  Servers* present = present_servers.load(std::memory_order_acquire);
  while (present == nullptr || present->generation != fork_generation()) {
    auto fresh = std::make_unique<Servers>();
    if (present_servers.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  }
  return *present;
}

struct EndAtExit {
  ~EndAtExit() {
    Servers* present = present_servers.load(std::memory_order_acquire);
    if (present == nullptr || present->generation != fork_generation()) return;
    std::list<std::unique_ptr<RendezvousServer>> last;
    const std::lock_guard lock(present->mutex);
    present->exiting = true;
    last.swap(present->running);
  }
};

}  // namespace

Result<UniqueIdBytes> create_unique_id(Deadline idle_until) {
  Servers& all = servers();
  static const EndAtExit end_at_exit;
  const std::lock_guard lock(all.mutex);
  if (all.exiting) return failure(Code::invalid_usage, "a unique id was asked for while the process ends");
  std::erase_if(all.running, [](const auto& server) { return server->finished(); });
  const UniqueId id{random_socket_name(), random_token()};
  SETO_ASSIGN(auto server, RendezvousServer::start(id, idle_until));
  all.running.push_back(std::move(server));
  return encode(id);
}

}  // namespace seto
