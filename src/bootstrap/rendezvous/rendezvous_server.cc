#include "src/bootstrap/rendezvous/rendezvous_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

// The data of an epoll event: the stop event, a listener, or a connection. The numbers of connections follow those of the
// listeners.
constexpr std::uint64_t kStopId = 0;
constexpr std::uint64_t kFirstListenerId = 1;
constexpr std::uint64_t kFirstConnectionId = 1'000;
constexpr int kEventsAtOnce = 256;
constexpr int kPauseMs = 100;

PendingConnections::Limits limits(std::size_t limit, int turn_ms, int stay_ms) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  return {std::clamp(static_cast<std::size_t>(descriptors.rlim_cur / 4), std::size_t{1}, limit), turn_ms, stay_ms};
}

}  // namespace

RendezvousServer::RendezvousServer(Listeners listeners, Options options)
    : listeners_(std::move(listeners)),
      options_(std::move(options)),
      sessions_(options_.serves, options_.idle_until),
      unauthenticated_(limits(kRendezvousUnauthenticatedLimit, kUnauthenticatedTurnMs, kRendezvousUnauthenticatedMs)),
      key_known_(limits(kKeyKnownLimit, kKeyKnownTurnMs, kKeyKnownMs)),
      next_id_(kFirstConnectionId) {}

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(Listeners listeners, Options options) {
  std::unique_ptr<RendezvousServer> server(new RendezvousServer(std::move(listeners), std::move(options)));
  server->stop_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  server->poll_ = PrivateFd(Fd(epoll_create1(EPOLL_CLOEXEC)));
  epoll_event event{EPOLLIN, {.u64 = kStopId}};
  if (!server->stop_.valid() || !server->poll_.valid() ||
      epoll_ctl(server->poll_.get(), EPOLL_CTL_ADD, server->stop_.get(), &event) != 0) {
    return socket_failure("cannot start the rendezvous");
  }
  SETO_ASSIGN(server->thread_, start_thread("seto-rendezvous", [raw = server.get()] { raw->serve(); }));
  return server;
}

RendezvousServer::~RendezvousServer() {
  if (!thread_.joinable()) return;
  stop();
  thread_.join();
}

void RendezvousServer::stop() {
  const std::lock_guard lock(end_mutex_);
  const std::uint64_t one = 1;
  if (stop_.valid()) static_cast<void>(!write(stop_.get(), &one, sizeof one));
}

void RendezvousServer::serve() {
  while (!ended()) {
    listen_or_not();
    wait_for_events();
    look_at_deadlines();
    sweep();
  }
  for (const auto& [number, session] : sessions_.open()) close_session(*session);
  connections_.clear();
  listeners_.close();
  {
    // create_unique_id() joins finished servers, but it may never be called again. So the server frees its sockets and sessions
    // here.
    const std::lock_guard lock(end_mutex_);
    poll_.close();
    stop_.close();
  }
  finished_.store(true, std::memory_order_release);
}

bool RendezvousServer::ended() {
  if (stopping_) {
    const bool all_said =
        std::all_of(connections_.begin(), connections_.end(), [](const auto& entry) { return !entry.second->wants_to_write(); });
    return (all_said && !awaits_late_ranks()) || end_until_.passed();
  }
  if (options_.serves == UniqueId::Serves::job) return false;
  const SessionState& state = sessions_.open().begin()->second->state;
  if (state.served() && connections_.empty()) return true;
  if (!state.broken().ok() && !failed_) {
    failed_ = true;
    end_until_ = Deadline::after_ms(kLateRankMs);
  }
  return failed_ && end_until_.passed();
}

bool RendezvousServer::awaits_late_ranks() const {
  return std::any_of(sessions_.open().begin(), sessions_.open().end(), [](const auto& entry) {
    return entry.second->state.awaits_late_ranks() && !entry.second->forget_at.passed();
  });
}

void RendezvousServer::wait_for_events() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(poll_.get(), events.data(), kEventsAtOnce, sleep_ms());
  for (int index = 0; index < count; ++index) {
    const std::uint64_t id = events[static_cast<std::size_t>(index)].data.u64;
    if (id == kStopId) {
      stopping_ = true;
      end_until_ = Deadline::after_ms(static_cast<std::uint64_t>(options_.shutdown_ms));
      epoll_ctl(poll_.get(), EPOLL_CTL_DEL, stop_.get(), nullptr);
    } else if (id < kFirstConnectionId) {
      accept_connections(static_cast<std::size_t>(id - kFirstListenerId));
    } else if (const auto found = connections_.find(id); found != connections_.end() && !closed_.contains(id)) {
      advance(*found->second);
    }
  }
}

int RendezvousServer::sleep_ms() const {
  int sleep = std::numeric_limits<int>::max();
  for (const auto& [number, session] : sessions_.open()) {
    sleep = std::min({sleep, session->state.remaining_ms(), session->forget_at.remaining_ms()});
  }
  if (failed_ || stopping_) sleep = std::min(sleep, end_until_.remaining_ms());
  if (!pause_until_.passed()) sleep = std::min(sleep, pause_until_.remaining_ms());
  return std::min({sleep, unauthenticated_.remaining_ms(), key_known_.remaining_ms()});
}

void RendezvousServer::look_at_deadlines() {
  close_late(unauthenticated_);
  close_late(key_known_);
  std::vector<std::uint64_t> over;
  for (const auto& [number, session] : sessions_.open()) {
    session->state.look_at_deadline(unproven_);
    if (const auto late = session->state.take_late_warning(); late) SETO_LOG(warn, "%s", late->c_str());
    announce(*session);
    if (session->state.served() || session->forget_at.passed()) over.push_back(number);
  }
  if (options_.serves == UniqueId::Serves::communicator) return;
  for (const std::uint64_t number : over) {
    close_session(*sessions_.open().at(number));
    sessions_.forget(number);
  }
}

void RendezvousServer::close_late(PendingConnections& pending) {
  for (const std::uint64_t id : pending.expired()) {
    closed_.insert(id);
    log_unauthenticated(connections_.at(id)->who, "that did not authenticate in time");
  }
}

// While no connection can be accepted, those in the kernel's queue must not wake this thread.
void RendezvousServer::listen_or_not() {
  const bool wanted =
      (!stopping_ || awaits_late_ranks()) && pause_until_.passed() && unauthenticated_.accepts() && key_known_.accepts();
  if (wanted == listening_) return;
  listening_ = wanted;
  for (std::size_t listener = 0; listener < listeners_.sockets().size(); ++listener) {
    epoll_event event{EPOLLIN, {.u64 = kFirstListenerId + listener}};
    epoll_ctl(poll_.get(), wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listeners_.sockets()[listener].get(), &event);
  }
}

void RendezvousServer::accept_connections(std::size_t listener) {
  while (listener < listeners_.sockets().size() && unauthenticated_.accepts() && key_known_.accepts()) {
    make_room(unauthenticated_);
    make_room(key_known_);
    Listeners::Caller caller = listeners_.accept(listener);
    if (!caller.fd.valid()) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) out_of_descriptors();
      return;
    }
    const std::uint64_t id = next_id_++;
    ServerConnection& connection = *(connections_[id] = std::make_unique<ServerConnection>(id, std::move(caller), options_.tls));
    unauthenticated_.add(id);
    watch(connection);
    advance(connection);
  }
}

void RendezvousServer::make_room(PendingConnections& pending) {
  if (!pending.full()) return;
  closed_.insert(pending.oldest());
  sweep();
}

// Unauthenticated connections must not use up the descriptors of a job, so they are closed first. If there are none, the members
// themselves are too many.
void RendezvousServer::out_of_descriptors() {
  const Status reason = socket_failure("the rendezvous, in the process that made the unique id, cannot accept more ranks");
  for (PendingConnections* pending : {&unauthenticated_, &key_known_}) {
    if (pending->empty()) continue;
    closed_.insert(pending->oldest());
    sweep();
    return;
  }
  for (const auto& [number, session] : sessions_.open()) {
    if (session->state.full()) continue;
    session->state.break_with(reason);
    announce(*session);
  }
  // Closing the listeners also closes the connections in the kernel's queue, so their ranks need not wait for a deadline. The
  // ranks of a job may connect again.
  if (options_.serves == UniqueId::Serves::communicator) listeners_.close();
  pause_until_ = Deadline::after_ms(kPauseMs);
}

void RendezvousServer::count(ServerConnection& connection, std::uint64_t bytes) {
  traffic_.fetch_add(bytes, std::memory_order_relaxed);
  if (connection.session != nullptr) {
    connection.session->bytes += bytes;
  } else {
    connection.handshake_bytes += bytes;
  }
}

void RendezvousServer::watch(ServerConnection& connection) {
  const bool state = connection.wants_to_write();
  if (connection.watched && connection.watched_for_room == state) return;
  epoll_event event{state ? EPOLLIN | EPOLLOUT : EPOLLIN, {.u64 = connection.id}};
  epoll_ctl(poll_.get(), connection.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, connection.number(), &event);
  connection.watched = true;
  connection.watched_for_room = state;
}

// Removes the connections that have ended. A rank that is gone can fail its session, and that can end further connections, so
// this repeats.
void RendezvousServer::sweep() {
  while (!closed_.empty()) {
    const std::uint64_t id = *closed_.begin();
    closed_.erase(closed_.begin());
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    const std::unique_ptr<ServerConnection> connection = std::move(found->second);
    connections_.erase(found);
    unauthenticated_.remove(id);
    key_known_.remove(id);
    if (connection->session == nullptr) continue;
    connection->session->connections.erase(connection->rank);
    connection->session->state.leave(connection->rank);
    announce(*connection->session);
  }
}

void RendezvousServer::close_session(Session& session) {
  if (session.state.size() > 0) {
    SETO_LOG(info, "rendezvous of %d ranks: %llu bytes sent and received, %llu for each rank", session.state.size(),
             static_cast<unsigned long long>(session.bytes),
             static_cast<unsigned long long>(session.bytes / static_cast<std::uint64_t>(session.state.size())));
  }
  for (const auto& [rank, id] : session.connections) {
    connections_.at(id)->session = nullptr;
    closed_.insert(id);
  }
  session.connections.clear();
}

}  // namespace seto
