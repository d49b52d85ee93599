#include "src/control/channel/tcp_control_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace seto {
namespace {

// Then the control thread looks at others first.
constexpr int kReadsAtOnce = 16;

std::atomic<std::uint64_t> next_death{1};

class DeathCallback final : public Wire::OnDeath {
 public:
  DeathCallback(Deaths& deaths, std::uint64_t id) : deaths_(deaths), id_(id) {}
  ~DeathCallback() override { deaths_.remove(id_); }

 private:
  Deaths& deaths_;
  const std::uint64_t id_;
};

}  // namespace

TcpWire::TcpWire(WireKeeper& keeper, const WirePeer& peer, PrivateFd socket)
    : keeper_(keeper), peer_(peer), socket_(std::move(socket)), silence_(keeper.pulse().time()) {}

Result<std::shared_ptr<TcpWire>> TcpWire::create(WireKeeper& keeper, const WirePeer& peer, PrivateFd socket) {
  std::shared_ptr<TcpWire> wire(new TcpWire(keeper, peer, std::move(socket)));
  if (keeper.pulse().on()) {
    // A black hole behind data that nobody acknowledges is noticed as soon as a silent one.
    const auto limit_ms = static_cast<unsigned>(keeper.pulse().timeout_ns() / 1'000'000);
    static_cast<void>(setsockopt(wire->socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms));
  }
  // Edges: what is not writable yet, or has hung up, must not be told all the time.
  keeper.made();
  auto watch = keeper.control().add(wire->socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    [weak = std::weak_ptr<TcpWire>(wire)](std::uint32_t events) {
                                      if (const auto strong = weak.lock()) strong->on_events(events);
                                    });
  if (!watch.ok()) return watch.status();
  wire->watch_ = std::move(watch).value();
  return wire;
}

TcpWire::~TcpWire() {
  if (generation_ != fork_generation()) return;
  watch_.remove();
  if (state_ == State::live) {
    out_.push_back(encode({WireFrameKind::bye}));
    if (flush() && out_.empty()) keeper_.linger(std::move(socket_));
  }
  keeper_.gone();
}

std::string TcpWire::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

bool TcpWire::live() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::live;
}

std::unique_ptr<Wire::OnDeath> TcpWire::on_death(std::function<void()> callback) {
  const std::uint64_t id = next_death.fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(keeper_.deaths().add(id, std::move(callback)));
  auto registration = std::make_unique<DeathCallback>(keeper_.deaths(), id);
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    deaths_.push_back(id);
    late = state_ == State::dead;
  }
  if (late) keeper_.needs_attention(weak_from_this());
  return registration;
}

void TcpWire::ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) {
  queue({WireFrameKind::ask, from_member, key, to_member}, kWireQuestionsLimit);
}

void TcpWire::news(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member, std::string_view bytes) {
  send({WireFrameKind::news, from_member, key, to_member, bytes});
}

void TcpWire::send(const WireFrame& frame) {
  if (!queue(frame, kWireQueueLimit))
    die("its process takes nothing in: " + std::to_string(kWireQueueLimit >> 20) + " MiB of control messages wait");
}

bool TcpWire::queue(const WireFrame& frame, std::size_t limit) {
  if (generation_ != fork_generation()) return true;
  bool sound = true;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live) return true;
    std::string bytes = encode(frame);
    if (out_size_ + bytes.size() > limit) return false;
    out_size_ += bytes.size();
    out_.push_back(std::move(bytes));
    sound = flush();
  }
  if (!sound) keeper_.needs_attention(weak_from_this());
  return true;
}

bool TcpWire::flush() {
  while (!out_.empty() && send_error_ == 0) {
    const std::string& front = out_.front();
    const ssize_t sent =
        ::send(socket_.get(), front.data() + front_sent_, front.size() - front_sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0) {
      send_error_ = errno;
      break;
    }
    front_sent_ += static_cast<std::size_t>(sent);
    if (front_sent_ < front.size()) continue;
    out_size_ -= std::min(out_size_, front.size());
    out_.pop_front();
    front_sent_ = 0;
  }
  return send_error_ == 0;
}

void TcpWire::on_events(std::uint32_t events) {
  bool sound = true;
  if ((events & EPOLLOUT) != 0) {
    const std::lock_guard lock(mutex_);
    sound = state_ != State::live || flush();
  }
  read_some();
  if (!sound) attend();
}

void TcpWire::read_some() {
  for (int count = 0; count < kReadsAtOnce; ++count) {
    std::array<char, kFrameLimit> bytes;
    const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return break_off(errno);
    if (got == 0) return hang_up();
    silence_.end(keeper_.pulse().time());
    const Status cut =
        reader_.feed({bytes.data(), static_cast<std::size_t>(got)}, [this](const WireFrame& frame) { take(frame); });
    if (!cut.ok()) return die(std::string(cut.text()));
  }
  keeper_.needs_attention(weak_from_this());
}

void TcpWire::take(const WireFrame& frame) {
  switch (frame.kind) {
    case WireFrameKind::ping:
      return send({WireFrameKind::pong});
    case WireFrameKind::pong:
      return;
    case WireFrameKind::ask:
      return answer(frame);
    case WireFrameKind::news:
      static_cast<void>(keeper_.mailboxes_of_wires().hear({frame.key, frame.to}, frame.from, frame.bytes));
      return;
    case WireFrameKind::gone:
      static_cast<void>(keeper_.mailboxes_of_wires().hear({frame.key, frame.to}, frame.from, {}));
      return;
    case WireFrameKind::join:
    case WireFrameKind::joined:
    case WireFrameKind::refused:
      return keeper_.negotiate(shared_from_this(), frame);
    case WireFrameKind::bye:
      return leave();
    case WireFrameKind::lost:
      return die("its process has given up this one, which " + std::string(frame.bytes.substr(0, 200)));
  }
}

void TcpWire::answer(const WireFrame& frame) {
  std::string bytes;
  const bool there = keeper_.mailboxes_of_wires().answer({frame.key, frame.to}, bytes);
  queue({there ? WireFrameKind::news : WireFrameKind::gone, frame.to, frame.key, frame.from, bytes}, kWireQuestionsLimit);
}

// Closed here too, so that the other end need not linger.
void TcpWire::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live) return;
    state_ = State::left;
    out_.clear();
  }
  shutdown(socket_.get(), SHUT_WR);
  keeper_.ended(*this);
}

void TcpWire::hang_up() { die("its process has ended"); }

void TcpWire::break_off(int error) {
  if (error == ECONNRESET || error == EPIPE) return die("its process has ended, or the connection to it was reset");
  if (error == ETIMEDOUT) {
    return die("what is sent to its process is not acknowledged: the network between the two, or its machine, is down");
  }
  die(std::string("the connection to its process failed: ") + std::strerror(error));
}

void TcpWire::die(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live) return;
    state_ = State::dead;
    why_ = why;
    out_.clear();
    out_size_ = 0;
  }
  dead_.store(true, std::memory_order_release);
  shutdown(socket_.get(), SHUT_WR);  // what still comes must not be answered by a reset, before the peer has read why
  keeper_.needs_attention(weak_from_this());
}

void TcpWire::beat() {
  const Pulse& pulse = keeper_.pulse();
  const std::uint64_t silent_ns = silence_.lasted_ns(pulse.time());
  if (silent_ns > pulse.timeout_ns()) {
    const std::string what = silence_text(silent_ns);
    send({WireFrameKind::lost, 0, 0, 0, what});
    return die("its process " + what);
  }
  if (silent_ns >= pulse.period_ns() / 2) send({WireFrameKind::ping});
}

void TcpWire::attend() {
  if (live()) read_some();
  std::vector<std::uint64_t> due;
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::dead) due.swap(deaths_);
    if (state_ == State::live) error = send_error_;
  }
  if (error != 0) return break_off(error);  // which calls for attention again
  if (!dead_.load(std::memory_order_acquire)) return;
  keeper_.ended(*this);
  for (const std::uint64_t id : due) keeper_.deaths().run(id, [](const std::function<void()>& callback) { callback(); });
}

}  // namespace seto
