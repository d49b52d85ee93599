#include "src/core/connection.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "src/base/log.h"
#include "src/core/neighbour.h"
#include "src/net/congestion.h"
#include "src/net/tcp_socket.h"
#include "transports/local/local_contexts.h"

namespace seto {

Result<std::shared_ptr<Connection>> Connection::within(const PeerAddress& peer) {
  std::shared_ptr<Connection> connection(new Connection(peer, "this process"));
  connection->shared_ = std::static_pointer_cast<SharedSegment>(LocalContexts::of_process().find(peer.context));
  if (connection->shared_ == nullptr) return failure(Code::remote_error, "its context in this process is gone already");
  return connection;
}

std::shared_ptr<Connection> Connection::beside(const PeerAddress& peer, std::shared_ptr<Neighbour> neighbour,
                                               SharedSegment shared) {
  std::shared_ptr<Connection> connection(new Connection(peer, "shared memory"));
  connection->shared_ = std::make_shared<SharedSegment>(std::move(shared));
  neighbour->remember(connection.get());
  connection->neighbour_ = std::move(neighbour);
  return connection;
}

Connection::~Connection() {
  if (neighbour_ != nullptr) neighbour_->forget(this);
}

void Connection::watch_beats(Heartbeats& heartbeats) {
  const SegmentHead& head = *reinterpret_cast<const SegmentHead*>(memory());
  beats_watched_ = heartbeats.watch(head.beats, [this](const std::string& why) {
    silence_ = why;
    frozen_.store(true, std::memory_order_release);
    neighbour_->wake_own();
  });
}

namespace {

// A link that breaks while the other process lives: its context has gone, which it says over the wire, or the network has cut it.
constexpr std::uint64_t kFarewellNs = 500'000'000;

// Both ends derive the same, whoever called.
Secret session_of(const Secret& key, const Connection::Own& own, const PeerAddress& peer) {
  const std::uint64_t words[] = {peer.attempt, std::min(own.context, peer.context), std::max(own.context, peer.context)};
  return key.derive("link", {reinterpret_cast<const char*>(words), sizeof words});
}

std::string way_of(int socket) {
  const Result<SocketAddress> here = local_address(socket);
  const Result<SocketAddress> there = remote_address(socket);
  return here.ok() && there.ok() ? "TCP " + host_text(here.value()) + " -> " + host_text(there.value()) : "TCP";
}

}  // namespace

Result<std::shared_ptr<Connection>> Connection::open(const Own& own, const PeerAddress& peer, const RemoteDoor& door,
                                                     Deadline until) {
  std::shared_ptr<Connection> connection(new Connection(peer, "TCP"));
  Visit visit{door.address, kPurposeData, own.context, peer.context, peer.attempt, 0, door.key, until};
  tcp::Link::Setup setup;
  for (; visit.index < door.sockets; ++visit.index) {
    SETO_ASSIGN(PrivateFd socket, own.doors->meet(visit));
    const std::string control = choose_congestion_control(socket.get());
    SETO_LOG(debug, "a data socket has the congestion control %s", control.c_str());
    if (visit.index == 0) connection->way_ = way_of(socket.get());
    setup.sockets.push_back(std::move(socket));
  }
  visit.index = 0;
  SETO_ASSIGN(connection->wire_, own.wires->meet(visit));
  setup.session = session_of(door.key, own, peer);
  SETO_ASSIGN(connection->link_, own.domain->add(std::move(setup)));
  Connection* const raw = connection.get();
  const int own_bell = own.segment->bell.get();
  connection->on_death_ = connection->wire_->on_death([raw, own_bell] {
    raw->link_->give_up();
    raw->dead_.store(true, std::memory_order_release);
    (void)eventfd_write(own_bell, 1);
  });
  return connection;
}

bool Connection::cut() const {
  const std::uint64_t since = link_ == nullptr ? 0 : link_->broken_since();
  return since != 0 && monotonic_ns() - since > kFarewellNs;
}

std::string Connection::why_dead() const {
  if (wire_ != nullptr && wire_->dead()) return wire_->why();
  if (link_ != nullptr && link_->broken()) return std::string(link_->why().text());
  if (!ended() && frozen_.load(std::memory_order_acquire)) return silence_;
  return "its process has ended";
}

void Connection::ring() const { (void)eventfd_write(shared_->bell.get(), 1); }

}  // namespace seto
