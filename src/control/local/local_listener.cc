#include "src/control/local/local_listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "src/base/log.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr long kTickMs = 50;

bool out_of_descriptors() { return errno == EMFILE || errno == ENFILE; }

Status no_descriptors_for_caller() {
  errno = EMFILE;
  return socket_failure("cannot take the connection of a peer");
}

}  // namespace

Result<std::unique_ptr<LocalListener>> LocalListener::create(ControlThread& control, const std::string& socket_name,
                                                             const Token& token) {
  std::unique_ptr<LocalListener> listener(new LocalListener(control, token));
  SETO_ASSIGN(listener->listener_, listen_local(socket_name, SocketKind::packets));
  listener->timer_ = PrivateFd(Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (!listener->timer_.valid()) return socket_failure("cannot receive peers");
  listener->reserve_ = spare_descriptor();
  if (!listener->reserve_.valid()) return socket_failure("cannot receive peers");
  LocalListener* raw = listener.get();
  const std::lock_guard lock(raw->mutex_);
  SETO_ASSIGN(raw->ticking_, control.add(raw->timer_.get(), EPOLLIN, [raw](std::uint32_t) {
    const std::lock_guard held(raw->mutex_);
    raw->tick();
  }));
  SETO_TRY(raw->listen());
  return listener;
}

LocalListener::~LocalListener() {
  // Handlers take the mutex, and removing a registration waits for them: so all registrations are moved out first.
  std::map<std::uint64_t, Unauthenticated> unauthenticated;
  std::map<CallKey, Parked> parked;
  Watch listening;
  Watch ticking;
  const std::lock_guard lock(mutex_);
  closing_ = true;
  unauthenticated.swap(unauthenticated_);
  parked.swap(parked_);
  listening = std::move(listening_);
  ticking = std::move(ticking_);
}

Result<PrivateFd> LocalListener::take(const CallKey& key, Deadline until) {
  Parked taken;  // destroyed after the lock is released, because its watch must be
  std::unique_lock lock(mutex_);
  while (true) {
    if (const auto found = parked_.find(key); found != parked_.end()) {
      taken = std::move(found->second);
      parked_.erase(found);
      lock.unlock();
      taken.watch.remove();
      return std::move(taken.fd);
    }
    if (refused_.erase(key) > 0) return no_descriptors_for_caller();
    if (until.passed()) return failure(Code::timeout, "it did not connect");
    arrived_.wait_for(lock, std::chrono::milliseconds(until.remaining_ms()));
  }
}

// Removing a watch waits for its handler, which takes the mutex: so the parked connections are moved out first.
void LocalListener::decline(AttemptId attempt, ContextId context, const Status& reason) {
  std::vector<std::pair<CallKey, Parked>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (declined_.try_emplace({attempt, context}, reason).second) declined_order_.push_back({attempt, context});
    if (declined_order_.size() > kDeclinedLimit) {
      declined_.erase(declined_order_.front());
      declined_order_.pop_front();
    }
    for (auto entry = parked_.begin(); entry != parked_.end();) {
      const CallKey& key = entry->first;
      const bool declined_now = key.attempt == attempt && key.answerer == context;
      if (declined_now) waiting.emplace_back(key, std::move(entry->second));
      entry = declined_now ? parked_.erase(entry) : std::next(entry);
    }
  }
  for (const auto& [key, parked] : waiting) refuse(key, parked.fd, reason);
}

void LocalListener::refuse(const CallKey& key, const PrivateFd& fd, const Status& reason) const {
  HandshakeMessage refusal;
  refusal.kind = HandshakeKind::refusal;
  refusal.of_receiver = key.caller_process;
  refusal.of_sender = token_;
  refusal.caller = key.caller;
  refusal.answerer = key.answerer;
  refusal.attempt = key.attempt;
  put_text(refusal, reason);
  // A new socket has room for one datagram, so this does not wait. The caller sees the hang-up in any case.
  static_cast<void>(send_handshake(fd.get(), refusal, {}, Deadline::after_ms(0)).ok());
}

Status LocalListener::listen() {
  SETO_ASSIGN(listening_, control_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) {
    const std::lock_guard held(mutex_);
    accept_all();
  }));
  return {};
}

void LocalListener::accept_all() {
  if (closing_) return;
  while (accept_one()) {
  }
}

// Returns false if no connection is pending, or none can be accepted now.
bool LocalListener::accept_one() {
  if (unauthenticated_.size() >= kUnauthenticatedLimit) {
    pause();
    return false;
  }
  PrivateFd fd = accept_local(listener_);
  if (fd.valid()) {
    admit(std::move(fd), false);
    return true;
  }
  if (errno == EAGAIN) return false;
  if (errno == ECONNABORTED || errno == EINTR) return true;
  if (out_of_descriptors() && reserve_.valid()) {
    reserve_.close();
    fd = accept_local(listener_);
    if (fd.valid()) admit(std::move(fd), true);
  }
  pause();
  return false;
}

// A caller sends its hello at once, so it has often arrived already.
void LocalListener::admit(PrivateFd fd, bool on_reserve) {
  if (!check_same_user(fd.get()).ok()) return;
  Unauthenticated one;
  one.fd = std::move(fd);
  one.refused = on_reserve;
  if (const auto datagram = receive_datagram(one.fd)) return handle(*datagram, std::move(one));
  const std::uint64_t id = next_id_++;
  auto watch = control_.add(one.fd.get(), EPOLLIN | EPOLLRDHUP, [this, id](std::uint32_t) {
    const std::lock_guard held(mutex_);
    handle(id);
  });
  if (!watch.ok()) return;
  one.watch = std::move(watch).value();
  unauthenticated_.emplace(id, std::move(one));
  set_timer(kTickMs);
}

// The kernel drops descriptors sent along with the datagram, because recv() does not ask for them.
std::optional<LocalListener::Datagram> LocalListener::receive_datagram(const PrivateFd& fd) {
  Datagram datagram;
  datagram.size = recv(fd.get(), datagram.bytes.data(), datagram.bytes.size(), MSG_DONTWAIT);
  if (datagram.size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  return datagram;
}

void LocalListener::handle(std::uint64_t id) {
  const auto found = unauthenticated_.find(id);
  if (found == unauthenticated_.end()) return;
  const auto datagram = receive_datagram(found->second.fd);
  if (!datagram) return;
  Unauthenticated one = std::move(found->second);
  unauthenticated_.erase(found);
  one.watch.remove();
  handle(*datagram, std::move(one));
}

void LocalListener::handle(const Datagram& datagram, Unauthenticated one) {
  if (datagram.size <= 0) return;  // the peer closed the socket: it only tested it, or it died
  const auto hello = read_hello(datagram.bytes.data(), static_cast<std::size_t>(datagram.size), token_);
  if (!hello) {
    SETO_LOG(warn, "closed a local connection that did not prove that it belongs to this job");
  } else {
    const bool on_reserve = one.refused;
    handle_hello(*hello, std::move(one));
    if (on_reserve) restore();  // at once: all processes of a node may be waiting for a refusal
  }
}

// A probe without a reply means that its sender may continue to wait.
void LocalListener::handle_hello(const HandshakeMessage& hello, Unauthenticated one) {
  const CallKey key{hello.of_sender, hello.caller, hello.answerer, hello.attempt};
  if (const auto given_up = declined_.find({hello.attempt, hello.answerer}); given_up != declined_.end()) {
    refuse(key, one.fd, given_up->second);
  } else if (hello.kind == HandshakeKind::probe) {
    return;
  } else if (one.refused) {
    if (refused_.size() >= kParkedLimit) refused_.clear();
    refused_.insert(key);
    refuse(key, one.fd, failure(Code::unavailable, "its process is out of file descriptors; raise ulimit -n there"));
    arrived_.notify_all();
  } else {
    park(key, std::move(one.fd));
  }
}

void LocalListener::park(const CallKey& key, PrivateFd fd) {
  if (parked_.size() >= kParkedLimit) return;
  const std::uint64_t id = next_id_++;
  auto watch = control_.watch(fd.get(), [this, id] {
    const std::lock_guard held(mutex_);
    forget(id);
  });
  if (!watch.ok()) return;
  // A later connection of the same pair replaces an earlier one, which the caller must have given up.
  parked_.erase(key);
  parked_.emplace(key, Parked{id, std::move(fd), std::move(watch).value()});
  arrived_.notify_all();
}

void LocalListener::forget(std::uint64_t id) {
  std::erase_if(parked_, [id](const auto& entry) { return entry.second.id == id; });
}

void LocalListener::pause() {
  listening_.remove();
  set_timer(kTickMs);
}

void LocalListener::tick() {
  std::uint64_t expirations = 0;
  static_cast<void>(!read(timer_.get(), &expirations, sizeof expirations));
  if (closing_) return;
  std::erase_if(unauthenticated_, [](const auto& entry) { return entry.second.until.passed(); });
  restore();
  if (unauthenticated_.empty() && listening_.active()) set_timer(0);
}

// Reopens the reserve and listens again once no connection uses the reserve.
void LocalListener::restore() {
  const bool reserve_in_use =
      std::any_of(unauthenticated_.begin(), unauthenticated_.end(), [](const auto& entry) { return entry.second.refused; });
  if (!reserve_.valid() && !reserve_in_use) reserve_ = spare_descriptor();
  if (!listening_.active() && !reserve_in_use) static_cast<void>(listen().ok());
}

void LocalListener::set_timer(long period_ms) {
  itimerspec when{};
  when.it_value.tv_nsec = period_ms * 1'000'000;
  when.it_interval = when.it_value;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace seto
