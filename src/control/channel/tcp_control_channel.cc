#include "src/control/channel/tcp_control_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "src/net/tcp_delivery.h"

namespace seto {
namespace {

// Then the control thread serves other handlers first.
constexpr int kReadsAtOnce = 16;
constexpr std::uint64_t kNsPerMs = 1'000'000;
// A kernel delays acknowledgements by up to 200 ms, and they take a round trip.
constexpr std::uint64_t kLateAcknowledgementMs = 500;

std::string outage_text(std::uint64_t lasted_ns) {
  char text[80];
  std::snprintf(text, sizeof text, "was cut off, with all of its site, for %.1f s (SETO_LINK_PATIENCE)",
                static_cast<double>(lasted_ns) * 1e-9);
  return text;
}

}  // namespace

TcpControlChannel::TcpControlChannel(ControlChannelOwner& owner, const ControlChannelPeer& peer, const Claim& claim,
                                     SecureStream socket)
    : owner_(owner),
      peer_(peer),
      claim_(claim),
      socket_(std::move(socket)),
      silence_(owner.heartbeat_timer().time()),
      site_silent_(owner.heartbeat_timer().time()) {}

Result<std::shared_ptr<TcpControlChannel>> TcpControlChannel::create(ControlChannelOwner& owner, const ControlChannelPeer& peer,
                                                                     const Claim& claim, SecureStream socket) {
  std::shared_ptr<TcpControlChannel> channel(new TcpControlChannel(owner, peer, claim, std::move(socket)));
  if (owner.heartbeat_timer().on()) {
    // Detects unacknowledged data as fast as a silent peer.
    const auto limit_ms = static_cast<unsigned>(owner.heartbeat_timer().timeout_ns() / 1'000'000);
    static_cast<void>(setsockopt(channel->socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms));
  }
  owner.channel_created();
  SETO_TRY(channel->watch());
  return channel;
}

// Edge-triggered: a socket that stays writable, or that the peer has closed, must not be reported again and again.
// The handshake may have read the first frames, and no event announces those.
Status TcpControlChannel::watch() {
  const bool pending = socket_.pending();
  SETO_ASSIGN(watch_, owner_.control().add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                           [weak = weak_from_this()](std::uint32_t events) {
                                             if (const auto strong = weak.lock()) strong->on_events(events);
                                           }));
  if (pending) owner_.needs_attention(weak_from_this());
  return {};
}

TcpControlChannel::~TcpControlChannel() {
  if (generation_ != fork_generation()) return;
  watch_.remove();
  if (state_ == State::live && !disconnected_) {
    out_.push_back(encode({ControlFrameKind::close}));
    if (flush() && out_.empty() && socket_.unsent() == 0) owner_.linger(std::move(socket_));
  }
  offer_.reset();
  route_.reset();  // holds a key admitted by the connector, which may end after the next call
  owner_.channel_destroyed();
}

void TcpControlChannel::ask_kernel(const std::function<void(int descriptor)>& question) const {
  const std::lock_guard lock(mutex_);
  if (!disconnected_) question(socket_.get());
}

std::string TcpControlChannel::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

bool TcpControlChannel::live() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::live;
}

std::unique_ptr<ControlChannel::OnDeath> TcpControlChannel::on_death(std::function<void()> callback) {
  auto registration = std::make_unique<DeathCallback>(owner_.deaths(), std::move(callback));
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    deaths_.push_back(registration->id());
    late = state_ == State::dead;
  }
  if (late) owner_.needs_attention(weak_from_this());
  return registration;
}

void TcpControlChannel::ask(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member) {
  queue({ControlFrameKind::ask, from_member, key, to_member}, kControlQuestionsLimit);
}

void TcpControlChannel::send_message(std::uint64_t key, std::uint32_t to_member, std::uint32_t from_member,
                                     std::string_view bytes) {
  send({ControlFrameKind::message, from_member, key, to_member, bytes});
}

void TcpControlChannel::send(const ControlFrame& frame) {
  if (!queue(frame, kControlQueueLimit))
    die("its process reads nothing: " + std::to_string(kControlQueueLimit >> 20) + " MiB of control messages wait");
}

bool TcpControlChannel::queue(const ControlFrame& frame, std::size_t limit) {
  if (generation_ != fork_generation()) return true;
  bool sound = true;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live) return true;
    std::string bytes = encode(frame);
    if (std::max(out_size_, sent_.kept_bytes()) + bytes.size() > limit) return false;
    const bool counted = is_counted(frame.kind);
    if (counted) sent_.add(bytes);
    if (disconnected_ || (resuming_ && counted)) return true;  // kept, and sent when the peer has said what it lacks
    out_size_ += bytes.size();
    out_.push_back(std::move(bytes));
    sound = flush();
  }
  if (!sound) owner_.needs_attention(weak_from_this());
  return true;
}

bool TcpControlChannel::flush() {
  while (!out_.empty() && send_error_ == 0) {
    const std::string& front = out_.front();
    const ssize_t sent = socket_.send(std::string_view(front).substr(front_sent_));
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
  if (send_error_ == 0 && !socket_.flush() && errno != EAGAIN) send_error_ = errno;
  return send_error_ == 0;
}

ssize_t TcpControlChannel::receive(char* to, std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (!disconnected_) return socket_.receive(to, most);
  errno = EAGAIN;
  return -1;
}

void TcpControlChannel::on_events(std::uint32_t events) {
  bool sound = true;
  if ((events & EPOLLOUT) != 0) {
    const std::lock_guard lock(mutex_);
    sound = state_ != State::live || disconnected_ || flush();
  }
  read_some();
  if (!sound) handle_attention();
}

void TcpControlChannel::read_some() {
  for (int count = 0; count < kReadsAtOnce; ++count) {
    std::array<char, kFrameLimit> bytes;
    const ssize_t got = receive(bytes.data(), bytes.size());
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return break_off(errno);
    if (got == 0) return hang_up();
    silence_.received(owner_.heartbeat_timer().time());
    const Status cut =
        reader_.feed({bytes.data(), static_cast<std::size_t>(got)}, [this](const ControlFrame& frame) { take(frame); });
    if (!cut.ok()) return die(std::string(cut.text()));
  }
  owner_.needs_attention(weak_from_this());
}

void TcpControlChannel::take(const ControlFrame& frame) {
  count(frame.kind);
  switch (frame.kind) {
    case ControlFrameKind::ping:
      send({ControlFrameKind::pong, 0, heard_});
      return peer_heard(frame.key);
    case ControlFrameKind::pong:
    case ControlFrameKind::heard:
      return peer_heard(frame.key);
    case ControlFrameKind::resumed:
      return resume(frame.key);
    case ControlFrameKind::ask:
      return answer(frame);
    case ControlFrameKind::message:
      static_cast<void>(owner_.message_handlers().receive({frame.key, frame.to}, frame.from, frame.bytes));
      return;
    case ControlFrameKind::no_handler:
      static_cast<void>(owner_.message_handlers().receive({frame.key, frame.to}, frame.from, {}));
      return;
    case ControlFrameKind::propose:
    case ControlFrameKind::agree:
    case ControlFrameKind::refuse:
      return owner_.negotiate(shared_from_this(), frame);
    case ControlFrameKind::close:
      return leave();
    case ControlFrameKind::peer_lost:
      return die("its process considers this one lost: it " + std::string(frame.bytes.substr(0, 200)));
    case ControlFrameKind::relayed:
    case ControlFrameKind::edge_lost:
    case ControlFrameKind::member_left:
    case ControlFrameKind::edge_over:
      if (const Status taken = owner_.pass_on(*this, frame); !taken.ok()) die(std::string(taken.text()));
      return;
  }
}

void TcpControlChannel::answer(const ControlFrame& frame) {
  std::string bytes;
  const bool there = owner_.message_handlers().answer({frame.key, frame.to}, bytes);
  queue({there ? ControlFrameKind::message : ControlFrameKind::no_handler, frame.to, frame.key, frame.from, bytes},
        kControlQuestionsLimit);
}

// Closes this end too, so that the other end need not linger.
void TcpControlChannel::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live) return;
    state_ = State::left;
    out_.clear();
    sent_.clear();
    if (!disconnected_) shutdown(socket_.get(), SHUT_WR);
  }
  owner_.ended(*this);
}

// After a reset that a send has met, a socket shows an end that the peer never sent.
void TcpControlChannel::hang_up() {
  bool is_break = false;
  {
    const std::lock_guard lock(mutex_);
    is_break = resuming_ || send_error_ != 0 || socket_.send_error() != 0;
  }
  if (is_break && survives()) return lose_connection("it ended");
  die("its process has ended");
}

void TcpControlChannel::break_off(int error) {
  if (survives()) return lose_connection(std::strerror(error));
  if (error == ECONNRESET || error == EPIPE) return die("its process has ended, or the connection to it was reset");
  if (error == ETIMEDOUT) {
    return die("what is sent to its process is not acknowledged: the network between the two, or its machine, is down");
  }
  std::unique_lock lock(mutex_);
  const std::string text = socket_.failure_text(error);
  lock.unlock();
  die("the connection to its process failed: " + text);
}

void TcpControlChannel::die(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live) return;
    state_ = State::dead;
    why_ = why;
    out_.clear();
    out_size_ = 0;
    sent_.clear();
    // Not close(): received data would cause a reset before the peer has read the reason.
    if (!disconnected_) shutdown(socket_.get(), SHUT_WR);
  }
  dead_.store(true, std::memory_order_release);
  owner_.needs_attention(weak_from_this());
}

void TcpControlChannel::at_site(std::string_view name, std::uint64_t patience_ms) {
  const HeartbeatTimer& timer = owner_.heartbeat_timer();
  const std::lock_guard lock(mutex_);
  site_ = name;
  patience_ns_ = patience_ms * kNsPerMs;
  if (timer.on() && patience_ms > 0 && route_ != nullptr) sent_.keep();  // without beats its patience would have no end
  if (timer.on() && patience_ms > 0 && !disconnected_) outlast_outages(socket_.get(), kernels_patience_ms());
}

// The kernel must not give up before beat() does.
std::uint64_t TcpControlChannel::kernels_patience_ms() const {
  return (patience_ns_ + 2 * owner_.heartbeat_timer().timeout_ns()) / kNsPerMs;
}

std::string TcpControlChannel::site() const {
  const std::lock_guard lock(mutex_);
  return site_;
}

bool TcpControlChannel::answers() { return silent_ns() <= 2 * owner_.heartbeat_timer().period_ns(); }

std::uint64_t TcpControlChannel::silent_ns() { return silence_.age_ns(owner_.heartbeat_timer().time()); }

void TcpControlChannel::beat(bool site_answers) {
  using Verdict = PeerSilence::Verdict;
  const HeartbeatTimer& timer = owner_.heartbeat_timer();
  if (!site_answers) site_silent_.update(timer.time());
  // A site whose connections are made again one by one answers over the first of them: the others have the timeout, too.
  const bool whole_site_lives = site_answers && site_silent_.age_ns(timer.time()) > timer.timeout_ns();
  PeerSilence::Rules rules{timer.timeout_ns(), 0, whole_site_lives};
  {
    const std::lock_guard lock(mutex_);
    rules.patience_ns = patience_ns_;
    const std::uint64_t late_ns = std::max(2 * timer.period_ns(), kLateAcknowledgementMs * kNsPerMs);
    if (disconnected_) {
      silence_.unreachable(timer.time());
    } else if (const auto acknowledged = tcp_acknowledged(socket_.get()); rules.patience_ns > 0 && acknowledged)
      silence_.acknowledged(timer.time(), acknowledged->bytes, acknowledged->waits, late_ns);
  }
  const std::uint64_t silent_ns = silence_.age_ns(timer.time());
  const Verdict verdict = silence_.verdict(timer.time(), rules);
  cut_off_.store(verdict == Verdict::cut_off, std::memory_order_relaxed);
  if (verdict == Verdict::lost || verdict == Verdict::given_up) {
    const std::string what = verdict == Verdict::lost ? silence_text(silent_ns) : outage_text(silent_ns);
    send({ControlFrameKind::peer_lost, 0, 0, 0, what});
    return die("its process " + what);
  }
  doubtful_.store(2 * silent_ns > timer.timeout_ns(), std::memory_order_relaxed);
  if (doubtful_.load(std::memory_order_relaxed)) ask_for_connection();
  if (silent_ns >= timer.period_ns() / 2) send({ControlFrameKind::ping, 0, heard_});
}

void TcpControlChannel::handle_attention() {
  take_offer();
  if (live()) read_some();
  std::vector<std::uint64_t> due;
  int error = 0;
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::dead) due.swap(deaths_);
    if (state_ == State::live && !disconnected_) error = send_error_;
  }
  if (error != 0) return break_off(error);  // it requests attention again
  if (!dead_.load(std::memory_order_acquire)) return;
  owner_.ended(*this);
  for (const std::uint64_t id : due) owner_.deaths().run(id, [](const std::function<void()>& callback) { callback(); });
}

}  // namespace seto
