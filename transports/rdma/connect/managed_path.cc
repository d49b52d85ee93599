#include "transports/rdma/connect/managed_path.h"

#include <utility>

#include "src/base/log.h"

namespace seto::rdma {
namespace {

// Unauthenticated callers without end do not hold the owner up.
constexpr int kMostEvents = 32;

}  // namespace

Result<std::unique_ptr<ManagedPath>> ManagedPath::listen(Setup setup) {
  std::unique_ptr<ManagedPath> path(new ManagedPath(std::move(setup)));
  path->listens_ = true;
  SETO_TRY(path->open());
  SETO_ASSIGN(path->service_, path->connection_->listen(path->setup_.own));
  return path;
}

Result<std::unique_ptr<ManagedPath>> ManagedPath::call(Setup setup, const ManagerAddress& peer) {
  std::unique_ptr<ManagedPath> path(new ManagedPath(std::move(setup)));
  SETO_TRY(path->open());
  const Setup& its = path->setup_;
  SETO_TRY(path->connection_->resolve_address({its.own, peer, its.traffic_class, its.timeout_ms}));
  return path;
}

Status ManagedPath::open() {
  SETO_ASSIGN(connection_, setup_.manager->new_connection());
  if (!setup_.watch) return {};
  watched_ = setup_.watch(connection_->descriptor(), true);
  return watched_ ? Status() : system_failure(Code::unavailable, "epoll refuses the events of the connection manager");
}

ManagedPath::~ManagedPath() {
  if (watched_) (void)setup_.watch(connection_->descriptor(), false);
}

Status ManagedPath::advance() {
  for (int events = 0; events < kMostEvents; ++events) {
    const std::optional<ManagerEvent> event = connection_->next_event();
    if (!event.has_value()) break;
    SETO_TRY(take(*event));
  }
  return {};
}

// Once the queue pair is connected, the manager has nothing to say about it: that the peer forgets the connection is its end.
Status ManagedPath::take(const ManagerEvent& event) {
  if (event.kind == ManagerEvent::Kind::called) return take_caller(event);
  if (connected_) return {};
  switch (event.kind) {
    case ManagerEvent::Kind::address_resolved:
      SETO_TRY(check_port(event));
      return connection_->resolve_route();
    case ManagerEvent::Kind::route_resolved:
      return connection_->call(setup_.greeting);
    case ManagerEvent::Kind::answered:
      return take_answer(event);
    case ManagerEvent::Kind::failed:
      return failure(Code::unavailable, "RDMA to %s: %s", setup_.peer.c_str(), event.why.c_str());
    default:
      return {};
  }
}

Status ManagedPath::take_caller(const ManagerEvent& event) {
  const bool is_peer = listens_ && !connected_ && equal(event.greeting.token, setup_.greeting.token) &&
                       event.greeting.queue_pair == setup_.peer_queue_pair;
  if (!is_peer) {
    SETO_LOG(debug, "a call of the connection manager that is not from %s is refused", setup_.peer.c_str());
    connection_->refuse();
    return {};
  }
  SETO_TRY(check_port(event));
  SETO_TRY(connect());
  SETO_TRY(connection_->accept(setup_.greeting));
  connected_ = true;
  return {};
}

Status ManagedPath::take_answer(const ManagerEvent& event) {
  if (event.greeting.queue_pair != setup_.peer_queue_pair || !equal(event.greeting.token, setup_.greeting.token))
    return failure(Code::remote_error, "another process than %s answers the call of the connection manager", setup_.peer.c_str());
  SETO_TRY(connect());
  SETO_TRY(connection_->confirm());
  connected_ = true;
  return {};
}

// The GID of the path is an index in the table of that port.
Status ManagedPath::check_port(const ManagerEvent& event) const {
  if (event.device == setup_.device && event.port == setup_.port) return {};
  return failure(Code::unavailable, "the connection manager uses port %u of %s for %s, which is an address of port %u of %s",
                 event.port, event.device.c_str(), to_text(setup_.own.gid).c_str(), setup_.port, setup_.device.c_str());
}

Status ManagedPath::connect() {
  SETO_ASSIGN(const QueuePairPath path, connection_->path());
  return setup_.connect(path);
}

}  // namespace seto::rdma
