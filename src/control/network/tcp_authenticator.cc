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
// Whoever sits on the last descriptor must speak soon.
constexpr int kOnReserveMs = 200;
// Then the control thread looks at others; epoll says again that there are more.
constexpr int kAcceptsAtOnce = 64;
constexpr std::uint64_t kNobody = 0;
constexpr std::uint64_t kHastyForALine = 256;

PrivateFd new_reserve() { return PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

bool out_of_descriptors() { return errno == EMFILE || errno == ENFILE; }

// Of IPv6 the part that a provider gives out whole.
bool same_place(const SocketAddress& left, const SocketAddress& right) {
  const std::ptrdiff_t size = left.family == AddressFamily::ipv4 ? 4 : 8;
  return left.family == right.family && std::equal(left.bytes.begin(), left.bytes.begin() + size, right.bytes.begin());
}

// Bytes that nobody read would turn the end of a connection into a reset, and the peer might not hear the last words.
void read_away(int fd) {
  char bytes[4096];
  static_cast<void>(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT));
}

}  // namespace

// While one lives the porch does.
class Porch::Busy final {
 public:
  explicit Busy(Porch& porch) : porch_(porch) {
    const std::lock_guard lock(porch_.mutex_);
    ++porch_.busy_;
  }
  ~Busy() {
    const std::lock_guard lock(porch_.mutex_);
    --porch_.busy_;
    porch_.idle_.notify_all();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Porch& porch_;
};

Result<std::unique_ptr<Porch>> Porch::create(ControlThread& control, TcpListener listener, const Token& self, KeyRing& keys,
                                             Visitors& visitors) {
  std::unique_ptr<Porch> porch(new Porch(control, self, keys, visitors));
  porch->listener_ = std::move(listener);
  porch->timer_ = PrivateFd(Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (!porch->timer_.valid()) return socket_failure("cannot receive peers over TCP");
  porch->reserve_ = new_reserve();
  if (!porch->reserve_.valid()) return socket_failure("cannot receive peers over TCP");
  Porch* const raw = porch.get();
  const std::lock_guard lock(raw->mutex_);
  SETO_ASSIGN(raw->ticking_, control.add(raw->timer_.get(), EPOLLIN, [raw](std::uint32_t) {
    const std::lock_guard held(raw->mutex_);
    raw->tick();
  }));
  SETO_TRY(raw->listen());
  return porch;
}

Porch::~Porch() {
  // Handlers take the mutex, and removing a registration waits for them: so everything is taken out first.
  Crowd crowd;
  std::vector<Watch> listening;
  Watch ticking;
  std::unique_lock lock(mutex_);
  closing_ = true;
  idle_.wait(lock, [this] { return busy_ == 0; });
  crowd.swap(crowd_);
  listening.swap(listening_);
  ticking = std::move(ticking_);
}

Status Porch::listen() {
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

void Porch::accept_some(std::size_t listener) {
  const Busy busy(*this);
  for (int count = 0; count < kAcceptsAtOnce; ++count) {
    std::uint64_t id = kNobody;
    {
      const std::lock_guard lock(mutex_);
      if (closing_ || listening_.empty()) return;
      if (crowd_.size() >= kHalfOpenLimit && !make_room()) return pause();
      bool on_reserve = false;
      PrivateFd fd = next_caller(listener, on_reserve);
      if (!fd.valid() && (errno == ECONNABORTED || errno == EINTR)) continue;
      if (!fd.valid() && errno != EAGAIN) return pause();
      if (!fd.valid()) return;
      id = admit(std::move(fd), on_reserve);
      if (on_reserve) pause();
    }
    if (id != kNobody) hear_one(id);  // what it has to say may be here already
  }
}

// Out of descriptors a stranger goes first; then the reserve takes the caller, which will be told.
PrivateFd Porch::next_caller(std::size_t listener, bool& on_reserve) {
  const PrivateFd& socket = listener_.sockets[listener];
  PrivateFd fd = accept_tcp(socket);
  if (fd.valid() || !out_of_descriptors()) return fd;
  const auto stranger = std::find_if(crowd_.begin(), crowd_.end(), [](const auto& entry) { return !entry.second.named(); });
  if (stranger != crowd_.end()) {
    make_way(stranger, "it was silent while descriptors were wanted");
    return accept_tcp(socket);
  }
  if (!reserve_.valid()) return fd;
  reserve_.close();
  on_reserve = true;
  return accept_tcp(socket);
}

std::uint64_t Porch::admit(PrivateFd fd, bool on_reserve) {
  const auto from = remote_address(fd.get());
  if (!from.ok()) return kNobody;  // it has hung up already
  make_room_of(from.value());
  const std::uint64_t id = next_id_++;
  auto watch = control_.add(fd.get(), EPOLLIN | EPOLLRDHUP, [this, id](std::uint32_t) { hear_one(id); });
  if (!watch.ok()) return kNobody;
  HalfOpen one{std::move(fd),
               std::move(watch).value(),
               from.value(),
               Deadline::after_ms(kHalfOpenMs),
               Deadline::after_ms(kHalfOpenGraceMs),
               AnswererHandshake(self_),
               on_reserve};
  if (on_reserve) one.until = Deadline::after_ms(kOnReserveMs);
  crowd_.emplace(id, std::move(one));
  set_timer(kTickMs);
  return id;
}

// False: everybody has named a key, and has had little time.
bool Porch::make_room() {
  auto which = std::find_if(crowd_.begin(), crowd_.end(), [](const auto& entry) { return !entry.second.named(); });
  if (which == crowd_.end()) which = crowd_.begin();
  if (which->second.named() && !which->second.grace.passed()) return false;
  make_way(which, "too many others were waiting");
  return true;
}

void Porch::make_room_of(const SocketAddress& from) {
  std::size_t count = 0;
  auto oldest = crowd_.end();
  for (auto entry = crowd_.begin(); entry != crowd_.end(); ++entry) {
    if (entry->second.named() || !same_place(entry->second.from, from)) continue;
    if (count++ == 0) oldest = entry;
  }
  if (count >= kHalfOpenLimitOfAddress) make_way(oldest, "too many of that address were silent");
}

void Porch::hear_one(std::uint64_t id) {
  const Busy busy(*this);
  std::unique_lock lock(mutex_);
  const auto found = crowd_.find(id);
  if (found == crowd_.end()) return;
  std::string why;
  switch (hear(found->second, why)) {
    case Heard::nothing_yet:
      return;
    case Heard::gone:
      return see_off(found, why);
    case Heard::proof:
      break;
  }
  HalfOpen one = std::move(found->second);
  crowd_.erase(found);
  one.watch.remove();
  const bool on_reserve = one.on_reserve;
  const KeyId key = one.handshake.wanted_key();
  lock.unlock();
  visitors_.come(key, {std::move(one.fd), std::move(one.handshake), on_reserve});
  lock.lock();
  if (!closing_ && listening_.empty()) restore();  // at once: a whole machine may be waiting for its refusal
}

Porch::Heard Porch::hear(HalfOpen& one, std::string& why) {
  while (one.handshake.wanted() > 0) {
    char bytes[kHelloSize];
    const ssize_t got = recv(one.fd.get(), bytes, one.handshake.wanted(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Heard::nothing_yet;
    if (got <= 0) return Heard::gone;
    const Status heard = one.handshake.feed({bytes, static_cast<std::size_t>(got)});
    if (!heard.ok()) {
      why = heard.text();
      return Heard::gone;
    }
    if (one.handshake.stage() == Stage::key_wanted) look_for_key(one);
    if (one.handshake.stage() == Stage::verdict_wanted) return Heard::proof;
  }
  // Its key is not here yet: until then it has nothing to say.
  char byte = 0;
  const ssize_t got = recv(one.fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::nothing_yet;
  if (got > 0) why = "it spoke out of turn";
  return Heard::gone;
}

void Porch::look_for_key(HalfOpen& one) {
  const std::optional<Secret> key = keys_.find(one.handshake.wanted_key());
  if (!key) return;
  one.handshake.give(*key);
  if (one.on_reserve) one.until = Deadline::after_ms(kHalfOpenMs);
  static_cast<void>(send_whole(one.fd.get(), one.handshake.take_out()));
}

void Porch::key_came(const KeyId& id) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, one] : crowd_)
    if (one.handshake.stage() == Stage::key_wanted && one.handshake.wanted_key() == id) look_for_key(one);
}

void Porch::see_off(Crowd::iterator which, const std::string& why) {
  HalfOpen& one = which->second;
  if (one.handshake.stage() == Stage::key_wanted && !why.empty()) {
    one.handshake.refuse_unknown(keys_.empty() ? AnswererHandshake::Lack::of_any_key : AnswererHandshake::Lack::of_this_key);
  }
  if (const std::string last_words = one.handshake.take_out(); !last_words.empty()) {
    static_cast<void>(send_whole(one.fd.get(), last_words));
    read_away(one.fd.get());
  }
  if (!why.empty()) {
    if (const auto line = log_.note(host_text(one.from), monotonic_ns(), kUnproven + why)) SETO_LOG(warn, "%s", line->c_str());
  }
  crowd_.erase(which);
}

// On a crowded machine members are slow to speak too: they call again, and are no news unless there are many.
void Porch::make_way(Crowd::iterator which, const std::string& why) {
  const bool young = !which->second.grace.passed();
  see_off(which, young && ++hasty_ % kHastyForALine != 0 ? std::string() : why);
}

void Porch::pause() {
  listening_.clear();
  set_timer(kTickMs);
}

void Porch::tick() {
  std::uint64_t expirations = 0;
  static_cast<void>(!read(timer_.get(), &expirations, sizeof expirations));
  if (closing_) return;
  for (auto entry = crowd_.begin(); entry != crowd_.end();) {
    const auto next = std::next(entry);
    if (entry->second.until.passed()) {
      const bool lacks_key = entry->second.handshake.stage() == Stage::key_wanted;
      see_off(entry, lacks_key ? "it named a key that no job of this process has" : "it was silent");
    }
    entry = next;
  }
  restore();
  if (crowd_.empty() && !listening_.empty()) set_timer(0);
}

// What was given up for a caller that has gone.
void Porch::restore() {
  const bool reserve_in_use =
      std::any_of(crowd_.begin(), crowd_.end(), [](const auto& entry) { return entry.second.on_reserve; });
  if (!reserve_.valid() && !reserve_in_use) reserve_ = new_reserve();
  if (listening_.empty() && !reserve_in_use) static_cast<void>(listen().ok());
}

void Porch::set_timer(long period_ms) {
  itimerspec when{};
  when.it_value.tv_nsec = period_ms * 1'000'000;
  when.it_interval = when.it_value;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace seto
