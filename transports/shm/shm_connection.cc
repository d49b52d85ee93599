#include "transports/shm/shm_connection.h"

#include <utility>

#include "transports/shm/contexts_of_process.h"
#include "transports/shm/local_process.h"

namespace seto {

ShmConnection::ShmConnection(const PeerContext& peer, Reach reach, std::shared_ptr<const ContextMemory> memory)
    : Connection(peer, reach, reach == Reach::process ? "this process" : "shared memory"), memory_(std::move(memory)) {}

Result<std::shared_ptr<ShmConnection>> ShmConnection::within(const PeerContext& peer) {
  std::shared_ptr<const ContextMemory> memory = ContextsOfProcess::instance().find(peer.context);
  if (memory == nullptr) return failure(Code::remote_error, "its context in this process has ended already");
  return std::shared_ptr<ShmConnection>(new ShmConnection(peer, Reach::process, std::move(memory)));
}

std::shared_ptr<ShmConnection> ShmConnection::to_local_process(const PeerContext& peer,
                                                               std::shared_ptr<LocalProcess> local_process,
                                                               ContextMemory memory) {
  std::shared_ptr<ShmConnection> connection(
      new ShmConnection(peer, Reach::host, std::make_shared<const ContextMemory>(std::move(memory))));
  local_process->add(connection.get());
  connection->local_process_ = std::move(local_process);
  return connection;
}

ShmConnection::~ShmConnection() {
  if (local_process_ != nullptr) local_process_->remove(this);
}

void ShmConnection::watch_heartbeats(Heartbeats& heartbeats) {
  heartbeats_watched_ = heartbeats.watch(memory().head().beats, [this](const std::string& why) {
    why_frozen_ = why;
    frozen_.store(true, std::memory_order_release);
    local_process_->wake_own_contexts();
  });
}

std::string ShmConnection::why_dead() const {
  if (!ended() && frozen_.load(std::memory_order_acquire)) return why_frozen_;
  return "its process has ended";
}

}  // namespace seto
