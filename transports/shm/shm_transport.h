#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/control/liveness/heartbeats.h"
#include "transports/shm/context_memory.h"
#include "transports/shm/process_setup.h"
#include "transports/slots/pool.h"
#include "transports/transport.h"

namespace seto {

// Shared memory: contexts of one host, in one process or in several. All of them are members of one peer group, because one slot
// serves the receivers of a multicast in whichever process they are.
class ShmTransport final : public Transport, private Endpoint {
 public:
  static Result<std::unique_ptr<Transport>> create(const TransportSetup& setup);
  // Tells other processes that this context has ended.
  ~ShmTransport() override;

  [[nodiscard]] const char* name() const override { return "shared memory"; }
  [[nodiscard]] bool reaches(const Place& own, const Place& peer) const override { return own.host == peer.host; }
  [[nodiscard]] Result<Endpoint*> open(OnOutput) override { return static_cast<Endpoint*>(this); }
  [[nodiscard]] MemoryUse memory_use() const override { return {pool_->leased(), pool_->used()}; }
  void arm() override;
  void disarm() override;

 private:
  explicit ShmTransport(const TransportSetup& setup) : setup_(setup) {}

  [[nodiscard]] std::string address(const Config&) const override { return {}; }
  [[nodiscard]] std::shared_ptr<void> admit(const Secret&) override { return nullptr; }
  [[nodiscard]] Status connect(const Attempt& attempt, Deadline until, Connections& made) override;
  void decline(const Attempt& attempt, const Status& reason) override;
  [[nodiscard]] Result<std::unique_ptr<PeerGroupSeat>> reserve_seat(const GroupSize& size) override;

  Status connect_processes(const Attempt& attempt, Deadline until, ProcessSetup& process_setup, Connections& made);
  [[nodiscard]] Result<std::shared_ptr<ShmConnection>> connection_to(const AttemptMember& member, const Attempt& attempt,
                                                                     Deadline until, ProcessSetup& process_setup);
  Result<Heartbeats*> start_heartbeat();
  void remember(const std::shared_ptr<LocalProcess>& process);

  TransportSetup setup_;
  std::shared_ptr<const ContextMemory> memory_;
  std::unique_ptr<slots::Pool> pool_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<LocalProcess>> processes_;  // to which this context is connected
  bool has_heartbeat_ = false;
  Heartbeats::Registration heartbeat_;  // counts in the head of the memory
};

}  // namespace seto
