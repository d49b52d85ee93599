#include "src/bootstrap/rendezvous/servers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "src/base/fork.h"

namespace seto {
namespace {

// The servers of this process that have not ended. They are mutable state of the process, because they must be ended and joined
// at exit and no other object outlives the calls that make ids. The table is never destroyed, so late calls can still use it.
struct Servers {
  const std::uint32_t generation = fork_generation();
  std::mutex mutex;
  bool exiting = false;
  struct OfId {
    Token token;
    std::unique_ptr<RendezvousServer> server;
  };
  std::list<OfId> running;
  std::map<std::string, std::optional<RootServer>> roots;  // empty: it is being started
  std::condition_variable started;                         // a server has started, or has failed to
};

std::atomic<Servers*> present_servers{nullptr};

// In a forked child the parent's servers have no threads, and their lock may be held for ever, so the child makes a new table.
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
    std::list<Servers::OfId> last;
    std::map<std::string, std::optional<RootServer>> last_roots;
    const std::lock_guard lock(present->mutex);
    present->exiting = true;
    last.swap(present->running);
    last_roots.swap(present->roots);
    for (const auto& [root, one] : last_roots) {
      if (one && one->at_exit) one->at_exit();
      if (one && one->server) one->server->stop();
    }
    for (const auto& one : last) one.server->stop();
  }
};

Servers& servers_until_exit() {
  Servers& all = servers();
  static const EndAtExit end_at_exit;
  return all;
}

Status process_ends() { return failure(Code::invalid_usage, "a rendezvous cannot be started while the process ends"); }

}  // namespace

// Opening sockets and starting threads takes time, so it is done without the lock, on which other threads would wait.
Result<UniqueIdBytes> create_unique_id(UniqueId::Serves serves, const NetworkChoice& network, Deadline idle_until) {
  Servers& all = servers_until_exit();
  SETO_ASSIGN(Listeners listeners, Listeners::open(network, Listeners::Reach::network));
  const UniqueId id{serves, random_token(), listeners.address()};
  SETO_ASSIGN(auto server, RendezvousServer::start(std::move(listeners),
                                                   {rendezvous_key(id.token), serves, idle_until, {}, kShutdownMs, network.tls}));
  std::list<Servers::OfId> finished;  // joined after the lock is released
  const std::lock_guard lock(all.mutex);
  if (all.exiting) return process_ends();
  for (auto one = all.running.begin(); one != all.running.end();) {
    const auto next = std::next(one);
    if (one->server->finished()) finished.splice(finished.end(), all.running, one);
    one = next;
  }
  all.running.push_back({id.token, std::move(server)});
  return encode(id);
}

void give_up_unique_id(const UniqueIdBytes& id) {
  const Result<UniqueId> known = decode(id);
  if (!known.ok()) return;
  Servers& all = servers();
  std::list<Servers::OfId> given_up;  // joined after the lock is released
  const std::lock_guard lock(all.mutex);
  const auto found =
      std::find_if(all.running.begin(), all.running.end(), [&](const auto& one) { return one.token == known.value().token; });
  if (found != all.running.end()) given_up.splice(given_up.end(), all.running, found);
}

Result<const RootServer*> root_server(const std::string& root, Deadline until, const std::function<Result<RootServer>()>& start) {
  Servers& all = servers_until_exit();
  std::unique_lock lock(all.mutex);
  for (auto found = all.roots.find(root); found != all.roots.end(); found = all.roots.find(root)) {
    if (found->second) return &*found->second;
    if (until.passed()) return failure(Code::timeout, "the rendezvous of this process was still being started at the deadline");
    all.started.wait_for(lock, std::chrono::milliseconds(std::max(1, until.wait_ms())));
  }
  if (all.exiting) return process_ends();
  all.roots.try_emplace(root);
  lock.unlock();
  Result<RootServer> made = start();
  lock.lock();
  all.started.notify_all();
  if (made.ok() && !all.exiting) return &*(all.roots[root] = std::move(made).value());
  all.roots.erase(root);
  if (!made.ok()) return made.status();
  lock.unlock();
  if (made->at_exit) made->at_exit();
  return process_ends();
}

}  // namespace seto
