#include "src/core/neighbour.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transports/local/local_contexts.h"

namespace seto {
namespace {

// Of each context: its memory and its bell.
constexpr std::size_t kGiftsOfOne = 2;

Result<std::vector<std::shared_ptr<SharedSegment>>> segments_of(const std::vector<ContextId>& contexts) {
  std::vector<std::shared_ptr<SharedSegment>> segments;
  for (const ContextId context : contexts) {
    segments.push_back(std::static_pointer_cast<SharedSegment>(LocalContexts::of_process().find(context)));
    if (segments.back() == nullptr) return failure(Code::remote_error, "a context of this process that was to join is gone");
  }
  return segments;
}

}  // namespace

Result<Neighbour::Approach> Neighbour::approach(const Introduced& introduced, Deadline until) {
  const auto& [own, theirs, attempt] = introduced;
  SETO_ASSIGN(auto segments, segments_of(own.contexts));
  Appointment appointment{theirs.process, own.contexts.front(), theirs.contexts.front(), {}, until, attempt};
  for (const auto& one : segments) appointment.gifts.insert(appointment.gifts.end(), {one->segment.fd(), one->bell.get()});
  appointment.expected = kGiftsOfOne * theirs.contexts.size();
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  Result<PrivateFd> called = meetings->call(appointment);
  return Approach{theirs.process, std::move(appointment), theirs.contexts, std::move(segments), std::move(called)};
}

Result<Connections> Neighbour::meet(Approach approach, Heartbeats& heartbeats) {
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  SETO_ASSIGN(Meeting meeting, meetings->meet(approach.appointment, std::move(approach.called)));

  std::shared_ptr<Neighbour> neighbour(new Neighbour(std::move(meeting.socket)));
  neighbour->own_.assign(approach.own.begin(), approach.own.end());
  Connections connections;
  for (std::size_t index = 0; index < approach.theirs.size(); ++index) {
    Fd memory = std::move(meeting.gifts[kGiftsOfOne * index]);
    SETO_ASSIGN(Segment segment, Segment::map(memory.get(), kSegmentLimit));
    connections.push_back(Connection::beside({approach.process, approach.theirs[index], approach.appointment.attempt}, neighbour,
                                             {std::move(segment), std::move(meeting.gifts[kGiftsOfOne * index + 1])}));
  }
  SETO_ASSIGN(ControlThread* const control, ControlThread::of_process());
  Neighbour* const raw = neighbour.get();
  SETO_ASSIGN(neighbour->watch_,
              control->add(raw->socket_.get(), EPOLLIN | EPOLLRDHUP | EPOLLET, [raw](std::uint32_t) { raw->hear(); }));
  for (const auto& one : connections) one->watch_beats(heartbeats);
  return connections;
}

void Neighbour::remember(Connection* connection) {
  const std::lock_guard lock(mutex_);
  theirs_.push_back(connection);
}

void Neighbour::forget(const Connection* connection) {
  if (generation_ != fork_generation()) return;
  const std::lock_guard lock(mutex_);
  std::erase(theirs_, connection);
}

// A full queue: the other process stands still, and keeps that memory until it hears of the end of this one.
void Neighbour::leave(ContextId own) {
  if (generation_ == fork_generation()) (void)send(socket_.get(), &own, sizeof own, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// On the control thread.
void Neighbour::hear() {
  bool changed = false;
  for (;;) {
    ContextId gone = 0;
    const ssize_t got = recv(socket_.get(), &gone, sizeof gone, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    const std::lock_guard lock(mutex_);
    for (Connection* const one : theirs_)
      if (got <= 0 || one->peer().context == gone) one->end();
    changed = true;
    if (got <= 0) break;
  }
  if (changed) wake_own();
}

void Neighbour::wake_own() const {
  for (const auto& weak : own_)
    if (const auto segment = weak.lock()) (void)eventfd_write(segment->bell.get(), 1);
}

}  // namespace seto
