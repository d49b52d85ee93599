#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/fd.h"
#include "tests/support/fake_verbs.h"
#include "transports/rdma/verbs/manager.h"
#include "transports/rdma/verbs/manager_advice.h"

namespace seto::support {

class FakeManagedConnection;

// The connection manager of all hosts of a fabric, in memory. Its paths differ from what the ports say: they have a service level
// and a flow label of their own, so that a test sees where a path is from. Any thread.
class FakeManager final : public rdma::ConnectionManager {
 public:
  static constexpr std::uint8_t kServiceLevel = 5;
  static constexpr std::uint32_t kFlowLabel = 0x1234;

  explicit FakeManager(FakeFabric& fabric) : fabric_(fabric) {}
  Result<std::unique_ptr<rdma::ManagedConnection>> new_connection() override;

  // The call fails with that errno, once, after so many that succeed.
  void fail(rdma::ManagerCall call, int error, std::uint64_t after = 0);
  // The event of this kind does not come: the one that is next, or all.
  void lose(rdma::ManagerEvent::Kind kind, std::uint64_t times = 1);
  // The event of this kind is a failure instead, once.
  void spoil(rdma::ManagerEvent::Kind kind);
  // Events wait until they are let go.
  void hold_events();
  void let_go();
  // All ports are told as those of this device.
  void confuse_devices(const std::string& name);
  // The partition of all paths.
  void set_pkey_index(std::uint16_t index);
  [[nodiscard]] std::size_t refused();
  [[nodiscard]] std::size_t connections();  // that exist
  [[nodiscard]] std::vector<rdma::ManagerAddress> listeners();

 private:
  friend class FakeManagedConnection;
  // A call as both ends know it. The connections are null when they have ended.
  struct Call {
    FakeManagedConnection* from = nullptr;
    FakeManagedConnection* to = nullptr;
    rdma::ManagerAddress caller, listener;
    rdma::ManagerGreeting greeting, answer;
    std::uint32_t sequence = 0, answer_sequence = 0;
    std::uint8_t traffic_class = 0;
  };
  struct Port {
    std::string device;
    rdma::PortFacts facts;
    std::uint32_t gid_index = 0;
  };
  struct Failure {
    int error = 0;
    std::uint64_t after = 0;
  };
  // All with the lock.
  Status injected(rdma::ManagerCall call);
  void tell(FakeManagedConnection& to, rdma::ManagerEvent event, std::shared_ptr<Call> call);
  std::optional<Port> port_of(const rdma::Gid& gid);
  std::optional<Port> port_at(const rdma::ManagerAddress& address);  // of the family that the address says

  FakeFabric& fabric_;
  std::mutex mutex_;
  std::map<std::uint16_t, FakeManagedConnection*> listeners_;
  std::uint16_t next_service_ = 1'000;
  std::uint32_t next_sequence_ = 100;
  std::array<std::deque<Failure>, rdma::kManagerCalls> failures_;
  std::map<rdma::ManagerEvent::Kind, std::uint64_t> lost_;
  std::map<rdma::ManagerEvent::Kind, std::uint64_t> spoiled_;
  bool holds_ = false;
  std::string confused_;
  std::uint16_t pkey_index_ = 0;
  std::size_t refused_ = 0, connections_ = 0;
  std::vector<FakeManagedConnection*> all_;
};

}  // namespace seto::support
