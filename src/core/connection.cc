#include "src/core/connection.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "src/control/doorbell.h"
#include "transports/local/local_contexts.h"

namespace seto {

Result<std::shared_ptr<Connection>> Connection::open(const Own& own, const PeerAddress& peer, Deadline until) {
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  std::shared_ptr<Connection> connection(new Connection(peer));
  if (peer.process == meetings->address()) {
    connection->local_ = std::static_pointer_cast<SharedSegment>(LocalContexts::of_process().find(peer.context));
    if (connection->local_ == nullptr) return failure(Code::remote_error, "its context in this process is gone already");
    return connection;
  }
  SETO_ASSIGN(Meeting meeting,
              meetings->meet({peer.process, own.context, peer.context, own.segment->segment.fd(), until, peer.attempt}));
  SETO_ASSIGN(Segment memory, Segment::map(meeting.memory.get(), kSegmentLimit));
  meeting.memory.close();
  connection->meeting_.emplace(std::move(meeting));
  connection->remote_.emplace(std::move(memory));
  SETO_ASSIGN(ControlThread* const control, ControlThread::of_process());
  Connection* const raw = connection.get();
  const int own_bell = own.segment->bell.get();
  SETO_ASSIGN(connection->watch_, control->watch(raw->socket(), [raw, own_bell] {
    raw->dead_.store(true, std::memory_order_release);
    (void)eventfd_write(own_bell, 1);
  }));
  return connection;
}

namespace {

// A link that breaks while the other process lives: its context has gone, which it says over the wire, or the network has cut it.
constexpr std::uint64_t kFarewellNs = 500'000'000;

// Both ends derive the same, whoever called.
Secret session_of(const Secret& key, const Connection::Own& own, const PeerAddress& peer) {
  const std::uint64_t words[] = {peer.attempt, std::min(own.context, peer.context), std::max(own.context, peer.context)};
  return key.derive("link", {reinterpret_cast<const char*>(words), sizeof words});
}

}  // namespace

Result<std::shared_ptr<Connection>> Connection::open(const Own& own, const PeerAddress& peer, const RemoteDoor& door,
                                                     Deadline until) {
  std::shared_ptr<Connection> connection(new Connection(peer));
  Visit visit{door.address, kPurposeData, own.context, peer.context, peer.attempt, 0, door.key, until};
  tcp::Link::Setup setup;
  for (; visit.index < door.sockets; ++visit.index) {
    SETO_ASSIGN(PrivateFd socket, own.doors->meet(visit));
    setup.sockets.push_back(std::move(socket));
  }
  visit.index = 0;
  SETO_ASSIGN(connection->wire_, own.wires->meet(visit));
  setup.session = session_of(door.key, own, peer);
  SETO_ASSIGN(connection->link_, own.domain->add(std::move(setup)));
  Connection* const raw = connection.get();
  const int own_bell = own.segment->bell.get();
  connection->on_death_ = connection->wire_->on_death([raw, own_bell] {
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
  return "its process has ended";
}

void Connection::ring() const {
  if (local_ != nullptr) {
    (void)eventfd_write(local_->bell.get(), 1);
  } else {
    (void)seto::ring(meeting_->socket.get());
  }
}

}  // namespace seto
