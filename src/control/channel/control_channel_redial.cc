#include "src/control/channel/control_channel_redial.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace seto {
namespace {

constexpr std::uint64_t kAttemptMs = 5'000;
constexpr int kFirstPauseMs = 50;
constexpr int kLongestPauseMs = 2'000;
// A process counts as ended when nothing has listened at its address for so long: a firewall may refuse connections for a moment.
constexpr std::uint64_t kGoneMs = 2'000;

}  // namespace

Status ControlChannelRedial::start() {
  return threads_.add([self = shared_from_this()] { self->step(); });
}

bool ControlChannelRedial::needed() const {
  const std::shared_ptr<TcpControlChannel> channel = channel_.lock();
  return channel != nullptr && channel->needs_connection();
}

// Holds no channel while it dials, so that the owner of one can close it.
void ControlChannelRedial::step() {
  pause();
  if (threads_.stopping() || !needed()) return;
  const Deadline until = Deadline::after_ms(kAttemptMs).unless(&threads_.stopping());
  TcpConnector::Reached reached = connector_.reach_again(route_->plan, ++attempts_, until);
  judge(reached);
  if (const std::shared_ptr<TcpControlChannel> channel = channel_.lock(); channel != nullptr && reached.socket) {
    channel->offer(attempts_, std::move(*reached.socket));
  } else if (reached.socket) {  // the channel was closed meanwhile
    static_cast<void>(reached.socket->send_whole(encode({ControlFrameKind::close})));
  }
  static_cast<void>(start());
}

void ControlChannelRedial::judge(const TcpConnector::Reached& reached) {
  if (!reached.gone) return lost_at_.reset();
  if (!lost_at_) lost_at_ = Deadline::after_ms(kGoneMs);
  if (!lost_at_->passed()) return;
  if (const std::shared_ptr<TcpControlChannel> channel = channel_.lock())
    channel->die("its process has ended: " + reached.report);
}

void ControlChannelRedial::pause() {
  const Deadline until = Deadline::after_ms(static_cast<std::uint64_t>(pause_ms_)).unless(&threads_.stopping());
  while (!until.passed()) static_cast<void>(poll(nullptr, 0, until.wait_ms()));
  pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, lost_at_ ? kFirstPauseMs * 8 : kLongestPauseMs);
}

}  // namespace seto
