#include "tests/support/fake_manager.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace seto::support {

using rdma::ManagerCall;
using rdma::ManagerEvent;

class FakeManagedConnection final : public rdma::ManagedConnection {
 public:
  explicit FakeManagedConnection(FakeManager& manager) : manager_(manager), readable_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  FakeManagedConnection(const FakeManagedConnection&) = delete;
  FakeManagedConnection& operator=(const FakeManagedConnection&) = delete;

  ~FakeManagedConnection() override {
    const std::lock_guard lock(manager_.mutex_);
    --manager_.connections_;
    std::erase(manager_.all_, this);
    std::erase_if(manager_.listeners_, [this](const auto& one) { return one.second == this; });
    for (const auto& call : calls_) {
      if (call->from == this) call->from = nullptr;
      if (call->to == this) call->to = nullptr;
    }
  }

  [[nodiscard]] int descriptor() const override { return readable_.get(); }

  std::optional<ManagerEvent> next_event() override {
    const std::lock_guard lock(manager_.mutex_);
    if (manager_.holds_ || events_.empty()) return std::nullopt;
    auto [event, call] = std::move(events_.front());
    events_.pop_front();
    std::uint64_t number = 0;
    if (events_.empty()) (void)!read(readable_.get(), &number, sizeof number);
    if (event.kind == ManagerEvent::Kind::called) caller_ = call;
    return event;
  }

  Result<std::uint16_t> listen(const rdma::ManagerAddress& own) override {
    const std::lock_guard lock(manager_.mutex_);
    for (const ManagerCall call : {ManagerCall::create_id, ManagerCall::bind, ManagerCall::listen})
      SETO_TRY(manager_.injected(call));
    if (!manager_.port_at(own).has_value()) return rdma::manager_failure(ManagerCall::bind, EADDRNOTAVAIL);
    own_ = own;
    own_.service = manager_.next_service_++;
    manager_.listeners_[own_.service] = this;
    return own_.service;
  }

  Status accept(const rdma::ManagerGreeting& greeting) override {
    const std::lock_guard lock(manager_.mutex_);
    SETO_TRY(manager_.injected(ManagerCall::accept));
    accepted_ = std::exchange(caller_, nullptr);
    accepted_->answer = greeting;
    ManagerEvent event;
    event.kind = ManagerEvent::Kind::answered;
    event.greeting = greeting;
    if (accepted_->from != nullptr) manager_.tell(*accepted_->from, std::move(event), accepted_);
    return {};
  }

  void refuse() override {
    const std::lock_guard lock(manager_.mutex_);
    if (caller_ == nullptr) return;
    ++manager_.refused_;
    ManagerEvent event;
    event.kind = ManagerEvent::Kind::failed;
    event.why = "the peer refused";
    if (caller_->from != nullptr) manager_.tell(*caller_->from, std::move(event), caller_);
    caller_ = nullptr;
  }

  Status resolve_address(const Destination& to) override {
    const std::lock_guard lock(manager_.mutex_);
    for (const ManagerCall call : {ManagerCall::create_id, ManagerCall::set_class, ManagerCall::resolve_address})
      SETO_TRY(manager_.injected(call));
    to_ = to;
    const auto port = manager_.port_at(to.own);
    if (!port.has_value() || !manager_.port_at(to.peer).has_value())
      return rdma::manager_failure(ManagerCall::resolve_address, EADDRNOTAVAIL);
    ManagerEvent event;
    event.kind = ManagerEvent::Kind::address_resolved;
    event.device = port->device;
    event.port = port->facts.number;
    manager_.tell(*this, std::move(event), nullptr);
    return {};
  }

  Status resolve_route() override {
    const std::lock_guard lock(manager_.mutex_);
    SETO_TRY(manager_.injected(ManagerCall::resolve_route));
    ManagerEvent event;
    event.kind = ManagerEvent::Kind::route_resolved;
    manager_.tell(*this, std::move(event), nullptr);
    return {};
  }

  Status call(const rdma::ManagerGreeting& greeting) override {
    const std::lock_guard lock(manager_.mutex_);
    SETO_TRY(manager_.injected(ManagerCall::connect));
    const auto listener = manager_.listeners_.find(to_.peer.service);
    ManagerEvent event;
    if (listener == manager_.listeners_.end() || listener->second->own_.gid != to_.peer.gid) {
      event.kind = ManagerEvent::Kind::failed;
      event.why = "no process listens";
      manager_.tell(*this, std::move(event), nullptr);
      return {};
    }
    auto call = std::make_shared<FakeManager::Call>();
    call->from = this;
    call->to = listener->second;
    call->caller = to_.own;
    call->listener = listener->second->own_;
    call->greeting = greeting;
    call->sequence = manager_.next_sequence_++;
    call->answer_sequence = manager_.next_sequence_++;
    call->traffic_class = to_.traffic_class;
    calls_.push_back(call);
    call->to->calls_.push_back(call);
    const auto port = manager_.port_of(call->listener.gid);
    event.kind = ManagerEvent::Kind::called;
    event.device = port->device;
    event.port = port->facts.number;
    event.greeting = greeting;
    manager_.tell(*call->to, std::move(event), call);
    return {};
  }

  Status confirm() override {
    const std::lock_guard lock(manager_.mutex_);
    return manager_.injected(ManagerCall::establish);
  }

  Result<rdma::QueuePairPath> path() override {
    const std::lock_guard lock(manager_.mutex_);
    SETO_TRY(manager_.injected(ManagerCall::query_path));
    const auto& call = caller_ != nullptr ? caller_ : accepted_ != nullptr ? accepted_ : calls_.back();
    const bool calls = call->from == this;
    const auto own = manager_.port_of(calls ? call->caller.gid : call->listener.gid);
    const auto peer = manager_.port_of(calls ? call->listener.gid : call->caller.gid);
    rdma::QueuePairPath path;
    path.port = own->facts.number;
    path.pkey_index = manager_.pkey_index_;
    path.mtu = (calls ? own : peer)->facts.mtu;  // of the caller, as the kernel says it for RoCE
    path.remote_queue_pair = calls ? call->answer.queue_pair : call->greeting.queue_pair;
    path.own_sequence = calls ? call->sequence : call->answer_sequence;
    path.remote_sequence = calls ? call->answer_sequence : call->sequence;
    path.remote_lid = peer->facts.lid;
    path.service_level = FakeManager::kServiceLevel;
    path.flow_label = FakeManager::kFlowLabel;
    path.traffic_class = call->traffic_class;
    path.timeout = 19;  // as the kernel says, which the library must not take over
    path.retry_count = 7;
    path.rnr_retry_count = 0;
    if (own->facts.link_layer == rdma::LinkLayer::ethernet) {
      path.gid_index = own->gid_index;
      path.remote_gid = calls ? call->listener.gid : call->caller.gid;
    }
    return path;
  }

 private:
  friend class FakeManager;
  FakeManager& manager_;
  const Fd readable_;
  std::deque<std::pair<ManagerEvent, std::shared_ptr<FakeManager::Call>>> events_;
  std::vector<std::shared_ptr<FakeManager::Call>> calls_;
  std::shared_ptr<FakeManager::Call> caller_, accepted_;
  rdma::ManagerAddress own_;
  Destination to_;
};

Result<std::unique_ptr<rdma::ManagedConnection>> FakeManager::new_connection() {
  const std::lock_guard lock(mutex_);
  SETO_TRY(injected(ManagerCall::create_channel));
  auto connection = std::make_unique<FakeManagedConnection>(*this);
  ++connections_;
  all_.push_back(connection.get());
  return std::unique_ptr<rdma::ManagedConnection>(std::move(connection));
}

void FakeManager::fail(ManagerCall call, int error, std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  failures_[static_cast<std::size_t>(call)].push_back({error, after});
}

void FakeManager::lose(ManagerEvent::Kind kind, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  lost_[kind] = times;
}

void FakeManager::spoil(ManagerEvent::Kind kind) {
  const std::lock_guard lock(mutex_);
  spoiled_[kind] = 1;
}

void FakeManager::hold_events() {
  const std::lock_guard lock(mutex_);
  holds_ = true;
}

void FakeManager::let_go() {
  const std::lock_guard lock(mutex_);
  holds_ = false;
}

void FakeManager::confuse_devices(const std::string& name) {
  const std::lock_guard lock(mutex_);
  confused_ = name;
}

void FakeManager::set_pkey_index(std::uint16_t index) {
  const std::lock_guard lock(mutex_);
  pkey_index_ = index;
}

std::size_t FakeManager::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

std::size_t FakeManager::connections() {
  const std::lock_guard lock(mutex_);
  return connections_;
}

std::vector<rdma::ManagerAddress> FakeManager::listeners() {
  const std::lock_guard lock(mutex_);
  std::vector<rdma::ManagerAddress> all;
  for (const auto& [service, connection] : listeners_) all.push_back(connection->own_);
  return all;
}

Status FakeManager::injected(ManagerCall call) {
  auto& failures = failures_[static_cast<std::size_t>(call)];
  if (failures.empty() || failures.front().after-- > 0) return {};
  const int error = failures.front().error;
  failures.pop_front();
  return rdma::manager_failure(call, error);
}

void FakeManager::tell(FakeManagedConnection& to, ManagerEvent event, std::shared_ptr<Call> call) {
  if (std::uint64_t& times = lost_[event.kind]; times > 0) {
    --times;
    return;
  }
  if (std::uint64_t& times = spoiled_[event.kind]; times > 0) {
    --times;
    event = {};
    event.kind = ManagerEvent::Kind::failed;
    event.why = "a failure of the manager";
  }
  if (!confused_.empty() && !event.device.empty()) event.device = confused_;
  to.events_.emplace_back(std::move(event), std::move(call));
  const std::uint64_t one = 1;
  (void)!write(to.readable_.get(), &one, sizeof one);
}

// The last entry with that address: the one of RoCE v2, as the kernel prefers it.
std::optional<FakeManager::Port> FakeManager::port_of(const rdma::Gid& gid) {
  std::optional<Port> found;
  for (const rdma::DeviceFacts& device : fabric_.facts())
    for (const rdma::PortFacts& port : device.ports)
      for (const rdma::GidEntry& entry : port.gids)
        if (entry.gid == gid) found = Port{device.name, port, entry.index};
  return found;
}

std::optional<FakeManager::Port> FakeManager::port_at(const rdma::ManagerAddress& address) {
  auto port = port_of(address.gid);
  if (port.has_value() && (port->facts.link_layer == rdma::LinkLayer::infiniband) != address.infiniband) port.reset();
  return port;
}

}  // namespace seto::support
