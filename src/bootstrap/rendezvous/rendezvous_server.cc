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

// What an event is of: the stop, a door, or a connection, whose ids come after.
constexpr std::uint64_t kStopId = 0;
constexpr std::uint64_t kFirstDoorId = 1;
constexpr std::uint64_t kFirstConnectionId = 1'000;
constexpr int kEventsAtOnce = 256;
constexpr int kPauseMs = 100;

Crowd::Manners manners(std::size_t limit, int turn_ms, int stay_ms) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  return {std::clamp(static_cast<std::size_t>(descriptors.rlim_cur / 4), std::size_t{1}, limit), turn_ms, stay_ms};
}

}  // namespace

RendezvousServer::RendezvousServer(Doors doors, Options options)
    : doors_(std::move(doors)),
      options_(std::move(options)),
      gatherings_(options_.serves, options_.idle_until),
      strangers_(manners(kStrangerLimit, kStrangerTurnMs, kStrangerMs)),
      guests_(manners(kGuestLimit, kGuestTurnMs, kGuestMs)),
      next_id_(kFirstConnectionId) {}

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(Doors doors, Options options) {
  std::unique_ptr<RendezvousServer> server(new RendezvousServer(std::move(doors), std::move(options)));
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
  for (const auto& [number, gathering] : gatherings_.open()) close_gathering(*gathering);
  connections_.clear();
  doors_.close();
  {
    // Nobody may ask for another id, which is when the finished are joined.
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
    return (all_said && !awaits_latecomers()) || end_until_.passed();
  }
  if (options_.serves == UniqueId::Serves::job) return false;
  const RendezvousRoom& room = gatherings_.open().begin()->second->room;
  if (room.served() && connections_.empty()) return true;
  if (!room.broken().ok() && !failed_) {
    failed_ = true;
    end_until_ = Deadline::after_ms(kLatecomerMs);
  }
  return failed_ && end_until_.passed();
}

bool RendezvousServer::awaits_latecomers() const {
  return std::any_of(gatherings_.open().begin(), gatherings_.open().end(), [](const auto& entry) {
    return entry.second->room.awaits_latecomers() && !entry.second->forget_at.passed();
  });
}

void RendezvousServer::wait_for_events() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(poll_.get(), events.data(), kEventsAtOnce, sleep_ms());
  for (int index = 0; index < count; ++index) {
    const std::uint64_t id = events[static_cast<std::size_t>(index)].data.u64;
    if (id == kStopId) {
      stopping_ = true;
      end_until_ = Deadline::after_ms(static_cast<std::uint64_t>(options_.last_words_ms));
      epoll_ctl(poll_.get(), EPOLL_CTL_DEL, stop_.get(), nullptr);
    } else if (id < kFirstConnectionId) {
      knock(static_cast<std::size_t>(id - kFirstDoorId));
    } else if (const auto found = connections_.find(id); found != connections_.end() && !gone_.contains(id)) {
      advance(*found->second);
    }
  }
}

int RendezvousServer::sleep_ms() const {
  int sleep = std::numeric_limits<int>::max();
  for (const auto& [number, gathering] : gatherings_.open()) {
    sleep = std::min({sleep, gathering->room.remaining_ms(), gathering->forget_at.remaining_ms()});
  }
  if (failed_ || stopping_) sleep = std::min(sleep, end_until_.remaining_ms());
  if (!pause_until_.passed()) sleep = std::min(sleep, pause_until_.remaining_ms());
  return std::min({sleep, strangers_.remaining_ms(), guests_.remaining_ms()});
}

void RendezvousServer::look_at_deadlines() {
  close_late(strangers_);
  close_late(guests_);
  std::vector<std::uint64_t> over;
  for (const auto& [number, gathering] : gatherings_.open()) {
    gathering->room.look_at_deadline(unproven_);
    announce(*gathering);
    if (gathering->room.served() || gathering->forget_at.passed()) over.push_back(number);
  }
  if (options_.serves == UniqueId::Serves::communicator) return;
  for (const std::uint64_t number : over) {
    close_gathering(*gatherings_.open().at(number));
    gatherings_.forget(number);
  }
}

void RendezvousServer::close_late(Crowd& crowd) {
  for (const std::uint64_t id : crowd.overstayed()) {
    gone_.insert(id);
    say_of_stranger(connections_.at(id)->who, "that did not say in time who it is");
  }
}

// Strangers that wait in the kernel's queue must not wake this thread for nothing.
void RendezvousServer::listen_or_not() {
  const bool wanted = (!stopping_ || awaits_latecomers()) && pause_until_.passed() && strangers_.takes() && guests_.takes();
  if (wanted == listening_) return;
  listening_ = wanted;
  for (std::size_t door = 0; door < doors_.sockets().size(); ++door) {
    epoll_event event{EPOLLIN, {.u64 = kFirstDoorId + door}};
    epoll_ctl(poll_.get(), wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, doors_.sockets()[door].get(), &event);
  }
}

void RendezvousServer::knock(std::size_t door) {
  while (door < doors_.sockets().size() && strangers_.takes() && guests_.takes()) {
    make_room(strangers_);
    make_room(guests_);
    Doors::Caller caller = doors_.accept(door);
    if (!caller.fd.valid()) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) out_of_descriptors();
      return;
    }
    const std::uint64_t id = next_id_++;
    ServerConnection& connection = *(connections_[id] = std::make_unique<ServerConnection>(id, std::move(caller)));
    strangers_.add(id);
    watch(connection);
    advance(connection);
  }
}

void RendezvousServer::make_room(Crowd& crowd) {
  if (!crowd.full()) return;
  gone_.insert(crowd.oldest());
  sweep();
}

// Strangers must not cost a job its descriptors. Without any, it is the members that are too many.
void RendezvousServer::out_of_descriptors() {
  const Status reason = socket_failure("the rendezvous, in the process that made the unique id, cannot take more ranks");
  for (Crowd* crowd : {&strangers_, &guests_}) {
    if (crowd->empty()) continue;
    gone_.insert(crowd->oldest());
    sweep();
    return;
  }
  for (const auto& [number, gathering] : gatherings_.open()) {
    if (gathering->room.full()) continue;
    gathering->room.break_with(reason);
    announce(*gathering);
  }
  // Those in the kernel's queue are hung up on rather than left to their deadlines; those of a job may come again.
  if (options_.serves == UniqueId::Serves::communicator) doors_.close();
  pause_until_ = Deadline::after_ms(kPauseMs);
}

void RendezvousServer::count(ServerConnection& connection, std::uint64_t bytes) {
  traffic_.fetch_add(bytes, std::memory_order_relaxed);
  if (connection.gathering != nullptr) {
    connection.gathering->bytes += bytes;
  } else {
    connection.stranger_bytes += bytes;
  }
}

void RendezvousServer::watch(ServerConnection& connection) {
  const bool room = connection.wants_to_write();
  if (connection.watched && connection.watched_for_room == room) return;
  epoll_event event{room ? EPOLLIN | EPOLLOUT : EPOLLIN, {.u64 = connection.id}};
  epoll_ctl(poll_.get(), connection.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, connection.number(), &event);
  connection.watched = true;
  connection.watched_for_room = room;
}

// Whoever is gone leaves the room; that may break it for the others, some of whom may be found gone by that.
void RendezvousServer::sweep() {
  while (!gone_.empty()) {
    const std::uint64_t id = *gone_.begin();
    gone_.erase(gone_.begin());
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    const std::unique_ptr<ServerConnection> connection = std::move(found->second);
    connections_.erase(found);
    strangers_.remove(id);
    guests_.remove(id);
    if (connection->gathering == nullptr) continue;
    connection->gathering->connections.erase(connection->rank);
    connection->gathering->room.leave(connection->rank);
    announce(*connection->gathering);
  }
}

void RendezvousServer::close_gathering(Gathering& gathering) {
  if (gathering.room.size() > 0) {
    SETO_LOG(info, "rendezvous of %d ranks: %llu bytes sent and received, %llu for each rank", gathering.room.size(),
             static_cast<unsigned long long>(gathering.bytes),
             static_cast<unsigned long long>(gathering.bytes / static_cast<std::uint64_t>(gathering.room.size())));
  }
  for (const auto& [rank, id] : gathering.connections) {
    connections_.at(id)->gathering = nullptr;
    gone_.insert(id);
  }
  gathering.connections.clear();
}

}  // namespace seto
