#include "transports/shm/process_setup.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace seto {
namespace {

struct SetupEntry {
  std::shared_ptr<ProcessSetup> process_setup;
  std::size_t still_to_ask = 0;
  Deadline until;
};

struct SetupTable {
  std::mutex mutex;
  std::map<AttemptId, SetupEntry> by_attempt;
};

// Leaked: threads that outlive main() may still be in an init.
SetupTable& setup_table() {
  static auto* const all = new SetupTable;
  return *all;
}

}  // namespace

std::shared_ptr<ProcessSetup> ProcessSetup::of_process(AttemptId attempt, std::size_t contexts, Deadline until) {
  if (contexts == 1) return std::make_shared<ProcessSetup>();
  SetupTable& all = setup_table();
  std::vector<std::shared_ptr<ProcessSetup>> expired;  // destroyed without the lock, since that closes connections
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.by_attempt, [&](auto& entry) {
    const bool late = entry.second.until.passed();
    if (late) expired.push_back(std::move(entry.second.process_setup));
    return late;
  });
  auto [found, fresh] = all.by_attempt.try_emplace(attempt, SetupEntry{nullptr, contexts, until.unless(nullptr)});
  if (fresh) found->second.process_setup = std::make_shared<ProcessSetup>();
  std::shared_ptr<ProcessSetup> process_setup = found->second.process_setup;
  if (--found->second.still_to_ask == 0) all.by_attempt.erase(found);
  return process_setup;
}

void ProcessSetup::publish(const std::string& process, const Result<ShmConnections>& result) {
  {
    const std::lock_guard lock(mutex_);
    results_.emplace(process, result);
  }
  published_.notify_all();
}

Result<std::shared_ptr<ShmConnection>> ProcessSetup::connection_to(const PeerContext& peer, Deadline until) {
  std::unique_lock lock(mutex_);
  auto result = results_.find(peer.process);
  while (result == results_.end()) {
    if (until.passed())
      return failure(Code::timeout,
                     "no rank of this process completed the handshake with its process before the deadline of the init");
    published_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
    result = results_.find(peer.process);
  }
  if (!result->second.ok()) return result->second.status();
  const ShmConnections& connections = result->second.value();
  const auto one = std::find_if(connections.begin(), connections.end(),
                                [&](const auto& each) { return each->peer().context == peer.context; });
  if (one == connections.end()) return failure(Code::remote_error, "its process sent no memory for its context");
  return *one;
}

}  // namespace seto
