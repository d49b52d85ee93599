#include "src/control/channel/control_channel_hub.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "src/base/log.h"
#include "src/control/channel/control_channel_redial.h"
#include "src/control/channel/tcp_control_overlay.h"
#include "src/net/local_socket.h"

namespace seto {

Result<std::unique_ptr<ControlChannelHub>> ControlChannelHub::create(ControlThread& control, TcpConnector& connector,
                                                                     const LivenessSettings& settings) {
  std::unique_ptr<ControlChannelHub> hub(new ControlChannelHub(control, connector));
  ControlChannelHub* const raw = hub.get();
  SETO_ASSIGN(raw->heartbeat_timer_, HeartbeatTimer::create(control, settings, [raw] { raw->beat(); }));
  raw->wakeup_ = PrivateFd(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!raw->wakeup_.valid()) return socket_failure("cannot keep control connections");
  SETO_ASSIGN(raw->wakeup_watch_, control.add(raw->wakeup_.get(), EPOLLIN, [raw](std::uint32_t) { raw->handle_attention(); }));
  connector.set_accept_handler(
      kPurposeControl, [raw](const ConnectKey& caller, SecureStream socket) { raw->on_accepted(caller, std::move(socket)); });
  connector.set_accept_handler(kPurposeControlAgain, [raw](const ConnectKey& caller, SecureStream socket) {
    raw->on_continued(caller, std::move(socket));
  });
  connector.on_decline([raw](AttemptId attempt, ContextId mine, const Status& reason) { raw->decline(attempt, mine, reason); });
  return hub;
}

ControlChannelHub::~ControlChannelHub() {
  if (generation_ != fork_generation()) return;
  connector_.on_decline({});
  connector_.set_accept_handler(kPurposeControl, {});
  connector_.set_accept_handler(kPurposeControlAgain, {});
  redials_.stop();
  {
    std::map<ContextPair, std::shared_ptr<TcpControlChannel>> proposed;
    std::map<AttemptId, Overlay> overlays;
    std::unique_lock lock(mutex_);
    proposed.swap(proposed_);
    overlays.swap(overlays_);
    lock.unlock();
  }
  {
    // The control thread may hold the last reference to a channel, in a handler.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return alive_ == 0; });
  }
  wakeup_watch_.remove();
  heartbeat_timer_.reset();
  std::deque<Lingering> lingering;  // its handlers take the mutex
  const std::lock_guard lock(mutex_);
  lingering.swap(lingering_);
}

void ControlChannelHub::channel_created() {
  const std::lock_guard lock(mutex_);
  ++alive_;
}

// Notifies under the lock, because the waiting thread may destroy this object afterwards.
void ControlChannelHub::channel_destroyed() {
  const std::lock_guard lock(mutex_);
  --alive_;
  changed_.notify_all();
}

void ControlChannelHub::add_channel(const std::shared_ptr<TcpControlChannel>& channel) {
  const std::lock_guard lock(mutex_);
  std::erase_if(channels_, [](const auto& one) { return one.expired(); });
  if (channels_.empty()) heartbeat_timer_->start();
  channels_.push_back(channel);
}

void ControlChannelHub::connect_again(const std::shared_ptr<TcpControlChannel>& channel) {
  const auto work = std::make_shared<ControlChannelRedial>(channel, channel->route(), channel->attempts(), connector_, redials_);
  if (const Status started = work->start(); !started.ok())
    channel->die("the connection to its process was reset: " + std::string(started.text()));
}

// On the control thread. The answer of a process that has ended the channel says so.
void ControlChannelHub::on_continued(const ConnectKey& caller, SecureStream socket) {
  std::vector<std::shared_ptr<TcpControlChannel>> channels;  // outlive the lock: one may be the last reference
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : channels_)
      if (auto one = weak.lock()) channels.push_back(std::move(one));
  }
  const auto found =
      std::find_if(channels.begin(), channels.end(), [&](const auto& one) { return one->is_continued_by(caller); });
  const std::shared_ptr<TcpControlChannel> channel = found == channels.end() ? nullptr : *found;
  if (channel != nullptr && channel->live()) return channel->offer(caller.claim.index, std::move(socket));
  const std::string last = channel == nullptr ? encode({ControlFrameKind::close}) : channel->last_words();
  if (socket.send_whole(last)) linger(std::move(socket));
}

void ControlChannelHub::needs_attention(std::weak_ptr<TcpControlChannel> channel) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(channel));
  }
  wake_up();
}

void ControlChannelHub::wake_up() { static_cast<void>(eventfd_write(wakeup_.get(), 1)); }

void ControlChannelHub::handle_attention() {
  eventfd_t calls = 0;
  static_cast<void>(eventfd_read(wakeup_.get(), &calls));
  std::vector<std::weak_ptr<TcpControlChannel>> waiting;
  std::vector<std::weak_ptr<TcpControlOverlay>> overlays;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
    overlays.swap(waiting_overlays_);
  }
  for (const auto& weak : waiting)
    if (const auto channel = weak.lock()) channel->handle_attention();
  for (const auto& weak : overlays)
    if (const auto overlay = weak.lock()) overlay->handle_attention();
}

void ControlChannelHub::beat() {
  std::vector<std::shared_ptr<TcpControlChannel>> channels;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(channels_, [](const auto& one) { return one.expired(); });
    if (channels_.empty()) heartbeat_timer_->stop();
    for (const auto& weak : channels_)
      if (auto channel = weak.lock()) channels.push_back(std::move(channel));
  }
  std::erase_if(channels, [](const auto& channel) { return !channel->live(); });
  std::set<std::string> answering;
  for (const auto& channel : channels)
    if (channel->answers()) answering.insert(channel->site());
  for (const auto& channel : channels) channel->beat(answering.count(channel->site()) > 0);
  tell_outages(channels);
}

// An outage has begun with the last sign of life of the site, a timeout before it is noticed.
void ControlChannelHub::tell_outages(const std::vector<std::shared_ptr<TcpControlChannel>>& channels) {
  std::map<std::string, std::uint64_t> silent;  // site -> since when
  std::set<std::string> living;
  for (const auto& channel : channels) {
    const std::string site = channel->site();
    if (channel->cut_off()) {
      std::uint64_t& since = silent[site];
      since = std::max(since, monotonic_ns() - channel->silent_ns());
    }
    if (channel->live() && !channel->cut_off()) living.insert(site);
  }
  for (auto& [site, since] : silent) {
    const auto known = outages_.find(site);
    if (known != outages_.end())
      since = known->second;
    else
      SETO_LOG(warn, "no process of site %s answers: it is cut off, and waited for (SETO_LINK_PATIENCE)", site.c_str());
  }
  for (const auto& [site, since] : outages_)
    if (silent.count(site) == 0 && living.count(site) > 0)
      SETO_LOG(warn, "site %s answers again, after %.1f s", site.c_str(), static_cast<double>(monotonic_ns() - since) * 1e-9);
  outages_ = std::move(silent);
}

// Drops the proposals on this channel and wakes the threads that wait for an answer on it.
void ControlChannelHub::ended(const TcpControlChannel& channel) {
  for (const auto& overlay : all_overlays()) overlay->channel_ended(channel);
  std::vector<std::shared_ptr<TcpControlChannel>> dropped;
  const std::lock_guard lock(mutex_);
  for (auto entry = proposed_.begin(); entry != proposed_.end();) {
    const bool its = entry->second.get() == &channel;
    if (its) dropped.push_back(std::move(entry->second));
    entry = its ? proposed_.erase(entry) : std::next(entry);
  }
  changed_.notify_all();
}

// Keeps kLingeringLimit sockets at most. Beyond it the oldest is closed at once, and its peer may take the close for a death.
void ControlChannelHub::linger(SecureStream socket) {
  constexpr std::size_t kLingeringLimit = 64;
  shutdown(socket.get(), SHUT_WR);
  Lingering one;
  Lingering oldest;
  std::unique_lock lock(mutex_);
  one.id = next_id_++;
  auto watch = control_.watch(socket.get(), [this, id = one.id] {
    Lingering done;
    const std::lock_guard held(mutex_);
    const auto found = std::find_if(lingering_.begin(), lingering_.end(), [id](const Lingering& each) { return each.id == id; });
    if (found == lingering_.end()) return;
    done = std::move(*found);
    lingering_.erase(found);
  });
  if (!watch.ok()) return;
  one.socket = std::move(socket);
  one.watch = std::move(watch).value();
  lingering_.push_back(std::move(one));
  if (lingering_.size() <= kLingeringLimit) return;
  oldest = std::move(lingering_.front());
  lingering_.pop_front();
  lock.unlock();  // its handler may be waiting for it
}

}  // namespace seto
