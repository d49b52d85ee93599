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
                                                                   const Identity& self, JobKeys& keys, AcceptedPeers& accepted) {
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
  HalfOpen one{AnswererChannel(std::move(fd), self_.process, self_.tls),
               std::move(watch).value(),
               from.value(),
               Deadline::after_ms(kHalfOpenMs),
               Deadline::after_ms(kHalfOpenGraceMs),
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
  accepted_.add(key, {std::move(one.channel), on_reserve});
  lock.lock();
  if (!closing_ && listening_.empty()) restore();  // at once: many peers may be waiting for a refusal
}

TcpAuthenticator::ReadResult TcpAuthenticator::read_handshake(HalfOpen& one, std::string& why) {
  AuthProgress progress = AuthProgress::decide;
  while (progress == AuthProgress::decide) {
    progress = one.channel.advance();
    if (progress != AuthProgress::decide) break;
    if (one.stage() == Stage::verdict_wanted) return ReadResult::proof;
    // A key that is not known yet may become known: key_added() continues.
    if (!look_up_key(one)) progress = one.channel.wait_for_key();
  }
  why = one.channel.why().text();
  return progress == AuthProgress::waiting ? ReadResult::nothing_yet : ReadResult::closed;
}

bool TcpAuthenticator::look_up_key(HalfOpen& one) {
  const std::optional<Secret> key = keys_.find(one.channel.handshake());
  if (key) set_key(one, *key);
  return key.has_value();
}

void TcpAuthenticator::set_key(HalfOpen& one, const Secret& key) {
  const AnswererHandshake& handshake = one.channel.handshake();
  one.key = key_id(key);
  one.doubtful = handshake.claim().answerer != self_.process || !seen_.add(handshake.hello());
  one.channel.set_key(key);
  if (one.on_reserve && !one.doubtful) one.until = Deadline::after_ms(kHalfOpenMs);
}

void TcpAuthenticator::key_added(const Secret& key) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, one] : pending_) {
    const AnswererHandshake& handshake = one.channel.handshake();
    if (handshake.stage() != Stage::key_wanted || !handshake.names(key)) continue;
    set_key(one, key);
    // The control thread reads what follows. But the beginning of TLS is here already, and no event announces it again.
    static_cast<void>(handshake.encrypted() ? one.channel.advance() : AuthProgress::waiting);
    static_cast<void>(one.channel.flush());
  }
}

void TcpAuthenticator::close_pending(PendingConnections::iterator which, const std::string& why) {
  HalfOpen& one = which->second;
  if (one.stage() == Stage::key_wanted && !why.empty()) {
    one.channel.refuse_unknown(keys_.empty() ? AnswererHandshake::MissingKey::any_key : AnswererHandshake::MissingKey::this_key);
  }
  if (one.channel.handshake().stage() == Stage::over) {
    static_cast<void>(one.channel.flush());
    one.channel.discard_unread();
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
      const bool lacks_key = entry->second.stage() == Stage::key_wanted;
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
