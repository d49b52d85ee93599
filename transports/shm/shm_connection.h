#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/control/liveness/heartbeats.h"
#include "transports/connection.h"
#include "transports/shm/context_memory.h"

namespace seto {

class LocalProcess;

// A connection to another context of this host: its memory, mapped here, and its wakeup. A connection into another process serves
// all contexts of this one.
class ShmConnection final : public Connection {
 public:
  // To a context of this process.
  static Result<std::shared_ptr<ShmConnection>> within(const PeerContext& peer);
  // To a context of another process, after the handshake with that process.
  static std::shared_ptr<ShmConnection> to_local_process(const PeerContext& peer, std::shared_ptr<LocalProcess> local_process,
                                                         ContextMemory memory);
  ~ShmConnection() override;

  [[nodiscard]] bool dead() const override { return ended() || frozen_.load(std::memory_order_acquire); }
  [[nodiscard]] bool ended() const override { return ended_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string why_dead() const override;

  [[nodiscard]] const ContextMemory& memory() const { return *memory_; }
  // Null: the peer is in this process.
  [[nodiscard]] const std::shared_ptr<LocalProcess>& local_process() const { return local_process_; }
  // Whether it has ended, or stands still, for code that does not know connections.
  [[nodiscard]] const std::atomic<bool>& ended_flag() const { return ended_; }
  [[nodiscard]] const std::atomic<bool>& frozen_flag() const { return frozen_; }

  // For a peer in another process: notices when that process is frozen.
  void watch_heartbeats(Heartbeats& heartbeats);
  // The peer has ended.
  void end() { ended_.store(true, std::memory_order_release); }

 private:
  ShmConnection(const PeerContext& peer, Reach reach, std::shared_ptr<const ContextMemory> memory);

  std::shared_ptr<LocalProcess> local_process_;
  std::shared_ptr<const ContextMemory> memory_;
  std::atomic<bool> ended_{false};
  std::string why_frozen_;  // written before frozen_ is set, never changed after
  std::atomic<bool> frozen_{false};
  Heartbeats::Registration heartbeats_watched_;  // last: destroyed before what its callback uses
};

using ShmConnections = std::vector<std::shared_ptr<ShmConnection>>;

}  // namespace seto
