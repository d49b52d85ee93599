#include "src/control/liveness/peer_liveness.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "src/net/local_socket.h"

namespace seto {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

void RunningTime::tick() {
  const std::uint64_t now = clock_();
  const std::uint64_t passed = now - last_ns_;
  const std::uint64_t most = period_ns_ + period_ns_ / 2;
  last_ns_ = now;
  if (passed > most) paused_ns_.fetch_add(passed - most, std::memory_order_relaxed);
}

std::string silence_text(std::uint64_t lasted_ns) {
  char text[80];
  std::snprintf(text, sizeof text, "gave no sign of life for %.1f s (SETO_LIVENESS_TIMEOUT_MS)",
                static_cast<double>(lasted_ns) * 1e-9);
  return text;
}

HeartbeatTimer::HeartbeatTimer(std::uint64_t period_ns, const LivenessSettings& settings)
    : period_ns_(period_ns), timeout_ns_(settings.timeout_ms * kNsPerMs), time_(period_ns, settings.now_ns) {}

Result<std::unique_ptr<HeartbeatTimer>> HeartbeatTimer::create(ControlThread& control, const LivenessSettings& settings,
                                                               std::function<void()> beat) {
  const std::uint64_t period = std::min(settings.heartbeat_ms * kNsPerMs, settings.timeout_ms * kNsPerMs / 3);
  std::unique_ptr<HeartbeatTimer> timer(new HeartbeatTimer(period, settings));
  if (!timer->on()) return timer;
  timer->timer_ = PrivateFd(Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (!timer->timer_.valid()) return socket_failure("cannot start the timer of the heartbeats");
  HeartbeatTimer* const raw = timer.get();
  SETO_ASSIGN(raw->ticking_, control.add(raw->timer_.get(), EPOLLIN, [raw, call = std::move(beat)](std::uint32_t) {
    std::uint64_t expirations = 0;
    static_cast<void>(!read(raw->timer_.get(), &expirations, sizeof expirations));
    raw->time_.tick();
    call();
  }));
  return timer;
}

void HeartbeatTimer::start() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(started_, true)) set_timer(period_ns_);
}

void HeartbeatTimer::stop() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(started_, false)) set_timer(0);
}

void HeartbeatTimer::set_timer(std::uint64_t period_ns) {
  if (!on()) return;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(period_ns / kNsPerSecond);
  when.it_value.tv_nsec = static_cast<long>(period_ns % kNsPerSecond);
  when.it_interval = when.it_value;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace seto
