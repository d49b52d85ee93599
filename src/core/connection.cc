#include "src/core/connection.h"

#include <sys/eventfd.h>

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

void Connection::ring() const {
  if (local_ != nullptr) {
    (void)eventfd_write(local_->bell.get(), 1);
  } else {
    (void)seto::ring(meeting_->socket.get());
  }
}

}  // namespace seto
