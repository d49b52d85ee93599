#include "src/control/network/tcp_authenticator.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "src/base/log.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

using Stage = AnswererHandshake::Stage;

constexpr long kTickMs = 50;
// The time limit of a connection that uses the reserve descriptor.
constexpr int kOnReserveMs = 200;
// Then the control thread serves other handlers; epoll reports remaining connections again.
constexpr int kAcceptsAtOnce = 64;
constexpr std::uint64_t kNoConnection = 0;
constexpr std::uint64_t kEarlyEvictionsPerLogLine = 256;

PrivateFd new_reserve() { return PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

bool out_of_descriptors() { return errno == EMFILE || errno == ENFILE; }

// Compares the whole IPv4 address, or the /64 prefix that a provider assigns as a unit.
bool same_origin(const SocketAddress& left, const SocketAddress& right) {
  const std::ptrdiff_t size = left.family == AddressFamily::ipv4 ? 4 : 8;
  return left.family == right.family && std::equal(left.bytes.begin(), left.bytes.begin() + size, right.bytes.begin());
}

// Unread bytes would turn the close into a reset, and the peer might not receive the final bytes.
void discard_unread(int fd) {
  char bytes[4096];
  static_cast<void>(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT));
}

}  // namespace

// While a Busy exists, the destructor of the authenticator waits.
class TcpAuthenticator::Busy final {
 public:
  explicit Busy(TcpAuthenticator& authenticator) : authenticator_(authenticator) {
    const std::lock_guard lock(authenticator_.mutex_);
    ++authenticator_.busy_;
  }
  ~Busy() {
    const std::lock_guard lock(authenticator_.mutex_);
    --authenticator_.busy_;
    authenticator_.idle_.notify_all();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  TcpAuthenticator& authenticator_;
};

Result<std::unique_ptr<TcpAuthenticator>> TcpAuthenticator::create(ControlThread& control, TcpListener listener,
                                                                   const Token& self, JobKeys& keys, AcceptedPeers& accepted) {
  std::unique_ptr<TcpAuthenticator> authenticator(new TcpAuthenticator(control, self, keys, accepted));
  authenticator->listener_ = std::move(listener);
  authenticator->timer_ = PrivateFd(Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (!authenticator->timer_.valid()) return socket_failure("cannot receive peers over TCP");
  authenticator->reserve_ = new_reserve();
  if (!authenticator->reserve_.valid()) return socket_failure("cannot receive peers over TCP");
  TcpAuthenticator* const raw = authenticator.get();
  const std::lock_guard lock(raw->mutex_);
  SETO_ASSIGN(raw->ticking_, control.add(raw->timer_.get(), EPOLLIN, [raw](std::uint32_t) {
    const std::lock_guard held(raw->mutex_);
    raw->tick();
  }));
  SETO_TRY(raw->listen());
  return authenticator;
}

TcpAuthenticator::~TcpAuthenticator() {
  // Handlers take the mutex, and removing a registration waits for them: so all registrations are moved out first.
  PendingConnections pending;
  std::vector<Watch> listening;
  Watch ticking;
  std::unique_lock lock(mutex_);
  closing_ = true;
  idle_.wait(lock, [this] { return busy_ == 0; });
  pending.swap(pending_);
  listening.swap(listening_);
  ticking = std::move(ticking_);
}

Status TcpAuthenticator::listen() {
  for (std::size_t index = 0; index < listener_.sockets.size(); ++index) {
    auto watch = control_.add(listener_.sockets[index].get(), EPOLLIN, [this, index](std::uint32_t) { accept_some(index); });
    if (!watch.ok()) {
      listening_.clear();
      return watch.status();
    }
    listening_.push_back(std::move(watch).value());
  }
  return {};
}

void TcpAuthenticator::accept_some(std::size_t listener) {
  const Busy busy(*this);
  for (int count = 0; count < kAcceptsAtOnce; ++count) {
    std::uint64_t id = kNoConnection;
    {
      const std::lock_guard lock(mutex_);
      if (closing_ || listening_.empty()) return;
      if (pending_.size() >= kHalfOpenLimit && !make_room()) return pause();
      bool on_reserve = false;
      PrivateFd fd = accept_next(listener, on_reserve);
      if (!fd.valid() && (errno == ECONNABORTED || errno == EINTR)) continue;
      if (!fd.valid() && errno != EAGAIN) return pause();
      if (!fd.valid()) return;
      id = admit(std::move(fd), on_reserve);
      if (on_reserve) pause();
    }
    if (id != kNoConnection) on_readable(id);  // its first bytes may have arrived already
  }
}

// Without free descriptors, first closes a connection that has named no known key; else accepts with the reserve, to refuse.
PrivateFd TcpAuthenticator::accept_next(std::size_t listener, bool& on_reserve) {
  const PrivateFd& socket = listener_.sockets[listener];
  PrivateFd fd = accept_tcp(socket);
  if (fd.valid() || !out_of_descriptors()) return fd;
  const auto unnamed = std::find_if(pending_.begin(), pending_.end(), [](const auto& entry) { return !entry.second.named(); });
  if (unnamed != pending_.end()) {
    evict(unnamed, "it was silent while descriptors were wanted");
    return accept_tcp(socket);
  }
  if (!reserve_.valid()) return fd;
  reserve_.close();
  on_reserve = true;
  return accept_tcp(socket);
}

std::uint64_t TcpAuthenticator::admit(PrivateFd fd, bool on_reserve) {
  const auto from = remote_address(fd.get());
  if (!from.ok()) return kNoConnection;  // the peer has closed the connection already
  make_room_from(from.value());
  const std::uint64_t id = next_id_++;
  auto watch = control_.add(fd.get(), EPOLLIN | EPOLLRDHUP, [this, id](std::uint32_t) { on_readable(id); });
  if (!watch.ok()) return kNoConnection;
  HalfOpen one{std::move(fd),
               std::move(watch).value(),
               from.value(),
               Deadline::after_ms(kHalfOpenMs),
               Deadline::after_ms(kHalfOpenGraceMs),
               AnswererHandshake(self_),
               on_reserve};
  if (on_reserve) one.until = Deadline::after_ms(kOnReserveMs);
  pending_.emplace(id, std::move(one));
  set_timer(kTickMs);
  return id;
}

// Returns false if every connection has named a known key and is within its grace time.
bool TcpAuthenticator::make_room() {
  auto which = std::find_if(pending_.begin(), pending_.end(), [](const auto& entry) { return !entry.second.named(); });
  if (which == pending_.end()) which = pending_.begin();
  if (which->second.named() && !which->second.grace.passed()) return false;
  evict(which, "too many others were waiting");
  return true;
}

void TcpAuthenticator::make_room_from(const SocketAddress& from) {
  std::size_t count = 0;
  auto oldest = pending_.end();
  for (auto entry = pending_.begin(); entry != pending_.end(); ++entry) {
    if (entry->second.named() || !same_origin(entry->second.from, from)) continue;
    if (count++ == 0) oldest = entry;
  }
  if (count >= kHalfOpenLimitOfAddress) evict(oldest, "too many of that address were silent");
}

void TcpAuthenticator::on_readable(std::uint64_t id) {
  const Busy busy(*this);
  std::unique_lock lock(mutex_);
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  std::string why;
  switch (read_handshake(found->second, why)) {
    case ReadResult::nothing_yet:
      return;
    case ReadResult::closed:
      return close_pending(found, why);
    case ReadResult::proof:
      break;
  }
  HalfOpen one = std::move(found->second);
  pending_.erase(found);
  one.watch.remove();
  const bool on_reserve = one.on_reserve;
  const KeyId key = one.key;
  lock.unlock();
  accepted_.add(key, {std::move(one.fd), std::move(one.handshake), on_reserve});
  lock.lock();
  if (!closing_ && listening_.empty()) restore();  // at once: many peers may be waiting for a refusal
}

TcpAuthenticator::ReadResult TcpAuthenticator::read_handshake(HalfOpen& one, std::string& why) {
  while (one.handshake.wanted() > 0) {
    char bytes[kHelloSize];
    const ssize_t got = recv(one.fd.get(), bytes, one.handshake.wanted(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return ReadResult::nothing_yet;
    if (got <= 0) return ReadResult::closed;
    const Status heard = one.handshake.feed({bytes, static_cast<std::size_t>(got)});
    if (!heard.ok()) {
      why = heard.text();
      return ReadResult::closed;
    }
    if (one.handshake.stage() == Stage::key_wanted) look_up_key(one);
    if (one.handshake.stage() == Stage::verdict_wanted) return ReadResult::proof;
  }
  // The key is not known yet: the peer must not send anything until then.
  char byte = 0;
  const ssize_t got = recv(one.fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return ReadResult::nothing_yet;
  if (got > 0) why = "it sent data out of turn";
  return ReadResult::closed;
}

void TcpAuthenticator::look_up_key(HalfOpen& one) {
  if (const std::optional<Secret> key = keys_.find(one.handshake)) set_key(one, *key);
}

void TcpAuthenticator::set_key(HalfOpen& one, const Secret& key) {
  one.key = key_id(key);
  one.doubtful = one.handshake.claim().answerer != self_ || !seen_.add(one.handshake.hello());
  one.handshake.set_key(key);
  if (one.on_reserve && !one.doubtful) one.until = Deadline::after_ms(kHalfOpenMs);
  static_cast<void>(send_whole(one.fd.get(), one.handshake.take_out()));
}

void TcpAuthenticator::key_added(const Secret& key) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, one] : pending_)
    if (one.handshake.stage() == Stage::key_wanted && one.handshake.names(key)) set_key(one, key);
}

void TcpAuthenticator::close_pending(PendingConnections::iterator which, const std::string& why) {
  HalfOpen& one = which->second;
  if (one.handshake.stage() == Stage::key_wanted && !why.empty()) {
    one.handshake.refuse_unknown(keys_.empty() ? AnswererHandshake::MissingKey::any_key
                                               : AnswererHandshake::MissingKey::this_key);
  }
  if (const std::string final_bytes = one.handshake.take_out(); !final_bytes.empty()) {
    static_cast<void>(send_whole(one.fd.get(), final_bytes));
    discard_unread(one.fd.get());
  }
  if (!why.empty()) {
    if (const auto line = log_.note(host_text(one.from), monotonic_ns(), kUnproven + why)) SETO_LOG(warn, "%s", line->c_str());
  }
  pending_.erase(which);
}

// On a busy machine members are slow too, and they connect again: only one in kEarlyEvictionsPerLogLine is logged.
void TcpAuthenticator::evict(PendingConnections::iterator which, const std::string& why) {
  const bool young = !which->second.grace.passed();
  close_pending(which, young && ++evicted_early_ % kEarlyEvictionsPerLogLine != 0 ? std::string() : why);
}

void TcpAuthenticator::pause() {
  listening_.clear();
  set_timer(kTickMs);
}

void TcpAuthenticator::tick() {
  std::uint64_t expirations = 0;
  static_cast<void>(!read(timer_.get(), &expirations, sizeof expirations));
  if (closing_) return;
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    const auto next = std::next(entry);
    if (entry->second.until.passed()) {
      const bool lacks_key = entry->second.handshake.stage() == Stage::key_wanted;
      close_pending(entry, lacks_key ? "it named a key that no job of this process has" : "it was silent");
    }
    entry = next;
  }
  restore();
  if (pending_.empty() && !listening_.empty()) set_timer(0);
}

// Reopens the reserve and listens again once no connection uses the reserve.
void TcpAuthenticator::restore() {
  const bool reserve_in_use =
      std::any_of(pending_.begin(), pending_.end(), [](const auto& entry) { return entry.second.on_reserve; });
  if (!reserve_.valid() && !reserve_in_use) reserve_ = new_reserve();
  if (listening_.empty() && !reserve_in_use) static_cast<void>(listen().ok());
}

void TcpAuthenticator::set_timer(long period_ms) {
  itimerspec when{};
  when.it_value.tv_nsec = period_ms * 1'000'000;
  when.it_interval = when.it_value;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace seto
