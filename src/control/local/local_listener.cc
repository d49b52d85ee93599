#include "src/control/local/local_listener.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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

PrivateFd new_reserve() { return PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

PrivateFd accept_from(const PrivateFd& listener) {
  return PrivateFd(Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

bool out_of_descriptors() { return errno == EMFILE || errno == ENFILE; }

Status no_descriptors_for_caller() {
  errno = EMFILE;
  return socket_failure("cannot take the connection of a peer");
}

}  // namespace

Result<std::unique_ptr<Reception>> Reception::create(ControlThread& control, const std::string& socket_name, const Token& token) {
  std::unique_ptr<Reception> reception(new Reception(control, token));
  SETO_ASSIGN(reception->listener_, listen_local(socket_name, SocketKind::packets));
  reception->timer_ = PrivateFd(Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (!reception->timer_.valid()) return socket_failure("cannot receive peers");
  reception->reserve_ = new_reserve();
  if (!reception->reserve_.valid()) return socket_failure("cannot receive peers");
  Reception* raw = reception.get();
  const std::lock_guard lock(raw->mutex_);
  SETO_ASSIGN(raw->ticking_, control.add(raw->timer_.get(), EPOLLIN, [raw](std::uint32_t) {
    const std::lock_guard held(raw->mutex_);
    raw->tick();
  }));
  SETO_TRY(raw->listen());
  return reception;
}

Reception::~Reception() {
  // Handlers take the mutex, and removing a registration waits for them: so everything is taken out first.
  std::map<std::uint64_t, Ungreeted> ungreeted;
  std::map<CallKey, Parked> parked;
  Watch listening;
  Watch ticking;
  const std::lock_guard lock(mutex_);
  closing_ = true;
  ungreeted.swap(ungreeted_);
  parked.swap(parked_);
  listening = std::move(listening_);
  ticking = std::move(ticking_);
}

Result<PrivateFd> Reception::take(const CallKey& key, Deadline until) {
  Parked taken;  // outlives the lock, as its watch must
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
    if (until.passed()) return failure(Code::timeout, "it did not call");
    arrived_.wait_for(lock, std::chrono::milliseconds(until.remaining_ms()));
  }
}

// Removing a watch waits for its handler, which takes the mutex: so what is parked is taken out first.
void Reception::decline(AttemptId attempt, ContextId context, const Status& reason) {
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
      const bool in_vain = key.attempt == attempt && key.answerer == context;
      if (in_vain) waiting.emplace_back(key, std::move(entry->second));
      entry = in_vain ? parked_.erase(entry) : std::next(entry);
    }
  }
  for (const auto& [key, parked] : waiting) refuse(key, parked.fd, reason);
}

void Reception::refuse(const CallKey& key, const PrivateFd& fd, const Status& reason) const {
  HandshakeMessage refusal;
  refusal.kind = HandshakeKind::refusal;
  refusal.of_receiver = key.caller_process;
  refusal.of_sender = token_;
  refusal.caller = key.caller;
  refusal.answerer = key.answerer;
  refusal.attempt = key.attempt;
  put_text(refusal, reason);
  // A fresh socket has room for one datagram, so that this does not wait; the caller sees the hang-up in any case.
  static_cast<void>(send_handshake(fd.get(), refusal, {}, Deadline::after_ms(0)).ok());
}

Status Reception::listen() {
  SETO_ASSIGN(listening_, control_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) {
    const std::lock_guard held(mutex_);
    accept_all();
  }));
  return {};
}

void Reception::accept_all() {
  if (closing_) return;
  while (accept_one()) {
  }
}

// False: nobody waits, or nobody more can be taken now.
bool Reception::accept_one() {
  if (ungreeted_.size() >= kUngreetedLimit) {
    pause();
    return false;
  }
  PrivateFd fd = accept_from(listener_);
  if (fd.valid()) {
    admit(std::move(fd), false);
    return true;
  }
  if (errno == EAGAIN) return false;
  if (errno == ECONNABORTED || errno == EINTR) return true;
  if (out_of_descriptors() && reserve_.valid()) {
    reserve_.close();
    fd = accept_from(listener_);
    if (fd.valid()) admit(std::move(fd), true);
  }
  pause();
  return false;
}

// Who calls speaks at once, so that its hello often lies there already.
void Reception::admit(PrivateFd fd, bool on_reserve) {
  if (!check_same_user(fd.get()).ok()) return;
  Ungreeted one;
  one.fd = std::move(fd);
  one.refused = on_reserve;
  if (const auto words = words_of(one.fd)) return hear(*words, std::move(one));
  const std::uint64_t id = next_id_++;
  auto watch = control_.add(one.fd.get(), EPOLLIN | EPOLLRDHUP, [this, id](std::uint32_t) {
    const std::lock_guard held(mutex_);
    hear(id);
  });
  if (!watch.ok()) return;
  one.watch = std::move(watch).value();
  ungreeted_.emplace(id, std::move(one));
  set_timer(kTickMs);
}

// Descriptors that a stranger sends along are dropped by the kernel: nothing here asks for them.
std::optional<Reception::Words> Reception::words_of(const PrivateFd& fd) {
  Words words;
  words.size = recv(fd.get(), words.bytes.data(), words.bytes.size(), MSG_DONTWAIT);
  if (words.size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  return words;
}

void Reception::hear(std::uint64_t id) {
  const auto found = ungreeted_.find(id);
  if (found == ungreeted_.end()) return;
  const auto words = words_of(found->second.fd);
  if (!words) return;
  Ungreeted one = std::move(found->second);
  ungreeted_.erase(found);
  one.watch.remove();
  hear(*words, std::move(one));
}

void Reception::hear(const Words& words, Ungreeted one) {
  if (words.size <= 0) return;  // a probe, or one that died
  const auto hello = read_hello(words.bytes.data(), static_cast<std::size_t>(words.size), token_);
  if (!hello) {
    SETO_LOG(warn, "closed a local connection that did not prove that it belongs to this job");
  } else {
    const bool on_reserve = one.refused;
    greet(*hello, std::move(one));
    if (on_reserve) restore();  // at once: a whole node may be waiting for its refusal
  }
}

// A question that gets no answer is one whose asker may go on waiting.
void Reception::greet(const HandshakeMessage& hello, Ungreeted one) {
  const CallKey key{hello.of_sender, hello.caller, hello.answerer, hello.attempt};
  if (const auto given_up = declined_.find({hello.attempt, hello.answerer}); given_up != declined_.end()) {
    refuse(key, one.fd, given_up->second);
  } else if (hello.kind == HandshakeKind::question) {
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

void Reception::park(const CallKey& key, PrivateFd fd) {
  if (parked_.size() >= kParkedLimit) return;
  const std::uint64_t id = next_id_++;
  auto watch = control_.watch(fd.get(), [this, id] {
    const std::lock_guard held(mutex_);
    forget(id);
  });
  if (!watch.ok()) return;
  // A later call of the same pair replaces an earlier one, which its caller must have given up.
  parked_.erase(key);
  parked_.emplace(key, Parked{id, std::move(fd), std::move(watch).value()});
  arrived_.notify_all();
}

void Reception::forget(std::uint64_t id) {
  std::erase_if(parked_, [id](const auto& entry) { return entry.second.id == id; });
}

void Reception::pause() {
  listening_.remove();
  set_timer(kTickMs);
}

void Reception::tick() {
  std::uint64_t expirations = 0;
  static_cast<void>(!read(timer_.get(), &expirations, sizeof expirations));
  if (closing_) return;
  std::erase_if(ungreeted_, [](const auto& entry) { return entry.second.until.passed(); });
  restore();
  if (ungreeted_.empty() && listening_.active()) set_timer(0);
}

// What was given up for a caller that has gone.
void Reception::restore() {
  const bool reserve_in_use =
      std::any_of(ungreeted_.begin(), ungreeted_.end(), [](const auto& entry) { return entry.second.refused; });
  if (!reserve_.valid() && !reserve_in_use) reserve_ = new_reserve();
  if (!listening_.active() && !reserve_in_use) static_cast<void>(listen().ok());
}

void Reception::set_timer(long period_ms) {
  itimerspec when{};
  when.it_value.tv_nsec = period_ms * 1'000'000;
  when.it_interval = when.it_value;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace seto
