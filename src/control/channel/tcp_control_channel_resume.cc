// How a channel goes on over another connection (decision 32).

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "src/base/log.h"
#include "src/control/channel/tcp_control_channel.h"
#include "src/net/tcp_delivery.h"

namespace seto {
namespace {

// The peer is told of counted frames after so many, so that it keeps no more, and with each ping and pong.
constexpr std::uint64_t kMostUntold = 16;

// The other end sees a reset, not an end.
void reset(SecureStream& socket) {
  if (!socket.valid()) return;
  constexpr linger kAtOnce{1, 0};
  static_cast<void>(setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &kAtOnce, sizeof kAtOnce));
  socket.close();
}

}  // namespace

void TcpControlChannel::set_route(std::shared_ptr<const ControlChannelRoute> route) {
  const std::lock_guard lock(mutex_);
  if (route_ == nullptr) route_ = std::move(route);
}

std::shared_ptr<const ControlChannelRoute> TcpControlChannel::route() const {
  const std::lock_guard lock(mutex_);
  return route_;
}

std::uint32_t TcpControlChannel::attempts() const {
  const std::lock_guard lock(mutex_);
  return taken_attempt_;
}

bool TcpControlChannel::is_continued_by(const ConnectKey& caller) const {
  Claim opened = caller.claim;
  opened.purpose = claim_.purpose;
  opened.index = claim_.index;
  return caller.key == peer_.key && opened == claim_;
}

std::string TcpControlChannel::last_words() const {
  const std::lock_guard lock(mutex_);
  if (state_ != State::dead) return encode({ControlFrameKind::close});
  return encode({ControlFrameKind::peer_lost, 0, 0, 0, why_});
}

// ---- frames are counted ----

void TcpControlChannel::count(ControlFrameKind kind) {
  if (!is_counted(kind)) return;
  ++heard_;
  if (heard_ - told_heard_ < kMostUntold || !survives()) return;
  told_heard_ = heard_;
  send({ControlFrameKind::heard, 0, heard_});
}

void TcpControlChannel::peer_heard(std::uint64_t frames) {
  bool sound = true;
  {
    const std::lock_guard lock(mutex_);
    sound = sent_.heard(frames);
  }
  if (!sound) die("its process has received control messages that were never sent");
}

// ---- a connection breaks ----

// Whether the channel outlives its connection.
bool TcpControlChannel::survives() {
  const std::lock_guard lock(mutex_);
  return state_ == State::live && sent_.keeps();
}

void TcpControlChannel::lose_connection(const std::string& why) {
  watch_.remove();
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::live || disconnected_) return;
    disconnected_ = true;
    resuming_ = false;
    send_error_ = 0;
    out_.clear();
    out_size_ = front_sent_ = 0;
    reset(socket_);
    SETO_LOG(info, "the control connection to a process of site %s broke (%s): another one is made", site_.c_str(), why.c_str());
  }
  ask_for_connection();
}

void TcpControlChannel::ask_for_connection() {
  {
    const std::lock_guard lock(mutex_);
    if (!sent_.keeps() || connecting_) return;
    if (!disconnected_ && !route_->plan.calls) return;  // only silent, and the other end calls
    connecting_ = true;
  }
  owner_.connect_again(shared_from_this());
}

// The end that answers has nothing to do while its connection is only silent.
bool TcpControlChannel::needs_connection() {
  const std::lock_guard lock(mutex_);
  connecting_ =
      state_ == State::live && !offer_ && (disconnected_ || (route_->plan.calls && doubtful_.load(std::memory_order_relaxed)));
  return connecting_;
}

// ---- another one takes its place ----

void TcpControlChannel::offer(std::uint32_t attempt, SecureStream socket) {
  {
    const std::lock_guard lock(mutex_);
    if (attempt <= taken_attempt_ || (offer_ && attempt <= offer_->attempt)) return reset(socket);
    if (offer_) reset(offer_->socket);
    offer_ = Offer{attempt, std::move(socket)};
  }
  owner_.needs_attention(weak_from_this());
}

void TcpControlChannel::take_offer() {
  {
    const std::lock_guard lock(mutex_);
    if (!offer_) return;
  }
  watch_.remove();
  bool sound = true;
  {
    const std::lock_guard lock(mutex_);
    Offer taken = std::move(*offer_);
    offer_.reset();
    if (state_ != State::live) return reset(taken.socket);
    reset(socket_);
    socket_ = std::move(taken.socket);
    taken_attempt_ = taken.attempt;
    disconnected_ = false;
    resuming_ = true;
    send_error_ = 0;
    reader_ = {};
    out_.assign({encode({ControlFrameKind::resumed, 0, heard_})});
    out_size_ = out_.front().size();
    front_sent_ = 0;
    if (owner_.heartbeat_timer().on()) outlast_outages(socket_.get(), kernels_patience_ms());
    sound = flush();
  }
  cut_off_.store(false, std::memory_order_relaxed);
  doubtful_.store(false, std::memory_order_relaxed);
  silence_.received(owner_.heartbeat_timer().time());  // the process has proved the key just now
  if (!sound) return lose_connection("it could not be used");
  if (const Status watched = watch(); !watched.ok()) die(std::string(watched.text()));
}

// The peer has received so many of the frames that were sent.
void TcpControlChannel::resume(std::uint64_t frames) {
  bool expected = false;
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    expected = std::exchange(resuming_, false);
    complete = expected && sent_.has_all_after(frames) && sent_.heard(frames);
    for (const std::string& frame : sent_.kept()) {
      if (!complete) break;
      out_.push_back(frame);
      out_size_ += frame.size();
    }
    if (complete) SETO_LOG(info, "the control connection to a process of site %s goes on", site_.c_str());
  }
  if (!expected) return die("its process sent a malformed control frame");
  if (!complete) return die("the connection to its process was reset, and control messages were lost");
  bool sound = true;
  {
    const std::lock_guard lock(mutex_);
    sound = flush();
  }
  if (!sound) owner_.needs_attention(weak_from_this());
}

}  // namespace seto
