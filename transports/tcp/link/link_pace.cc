// The rate of a link, as the kernel sees it, and the pace of its sockets.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "src/base/clock.h"
#include "transports/tcp/link/link.h"
#include "transports/tcp/link/pace.h"

namespace seto::tcp {

std::size_t queued_bytes(int fd, unsigned long which) {
  int bytes = 0;
  return ioctl(fd, which, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

// Only while output is under way, and rarely: one system call for each socket and round trip.
void Link::measure() {
  const std::uint64_t now = monotonic_ns();
  if (broken() || !sampler_->due(now)) return;
  std::array<std::optional<TcpDelivery>, kMostSockets> seen;
  const std::size_t count = std::min(sockets_.size(), seen.size());
  for (std::size_t i = 0; i < count; ++i)
    if (sockets_[i]->live()) seen[i] = tcp_delivery(sockets_[i]->fd.get());
  const std::span<const std::optional<TcpDelivery>> all(seen.data(), count);
  const bool dry = std::exchange(ran_dry_, false);
  const bool held_back = std::exchange(was_held_back_, held_back_) && !dry;
  const std::uint64_t before = measurements();
  (void)sampler_->take({all, dry, now, held_back});
  if (flight_ != nullptr) limit_flight(all, held_back, now);
  seen_.take(measured_rate(), measurements() != before, sampler_->carried(), now);
  tell_rate();
}

std::uint64_t Link::measurements() const { return sampler_->samples() + (flight_ == nullptr ? 0 : flight_->measurements()); }

// The limit of bytes in flight measures whenever a queue or the limit itself shows that the link is full. The sampler needs full
// looks one after another, which calls of a few round trips rarely give: it serves links without a limit.
double Link::measured_rate() const {
  const bool by_limit = flight_ != nullptr && flight_->measurements() >= kMeasurementsNeeded;
  return by_limit ? flight_->measured() : sampler_->rate();
}

void Link::tell_rate() {
  const double rate = measured_rate();
  if (rate == 0) return;
  if (rate <= kTellRate * told_rate_ && rate * kTellRate >= told_rate_) return;
  told_rate_ = rate;
  Frame frame;
  frame.set_kind(FrameKind::rate);
  frame.mark = static_cast<std::uint64_t>(rate);
  frame.size = sampler_->round_trip_us();
  queue_urgent(frame);
}

void Link::limit_flight(std::span<const std::optional<TcpDelivery>> seen, bool held_back, std::uint64_t now_ns) {
  FlightLimit::Look look{sampler_->latest_bytes(), sampler_->latest_ns(), 0, held_back, 0, now_ns};
  for (const auto& socket : sockets_)
    if (socket->live()) look.in_flight += queued_bytes(socket->fd.get(), SIOCOUTQ);
  for (const auto& socket : seen)
    if (socket && socket->now_us != 0 && (look.round_trip_us == 0 || socket->now_us < look.round_trip_us))
      look.round_trip_us = socket->now_us;
  flight_->take(look);
  seen_.take_round_trip(flight_->base_us());
  pace_sockets();
}

// Each call of the kernel is saved where little changes, but no socket keeps a pace that is above its share of the limit.
void Link::pace_sockets() {
  if (sockets_.empty()) return;
  const SocketPace pace = pace_of_socket(flight_ == nullptr ? 0 : flight_->pace(), static_cast<double>(site_pace_),
                                         std::max<std::size_t>(1, live_paths()));
  if (!pace.differs_from(pace_)) return;
  pace_ = pace;
  const std::uint64_t most = pace.bytes_per_second == 0 ? kUnlimited : static_cast<std::uint64_t>(pace.bytes_per_second);
  for (const auto& socket : sockets_) (void)setsockopt(socket->fd.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof most);
}

// ---- the limit of a site ----

void Link::limit_site_pace(std::uint64_t bytes_per_second) {
  std::uint64_t before = site_pace_limit_.load(std::memory_order_relaxed);
  while ((before == 0 || bytes_per_second < before) &&
         !site_pace_limit_.compare_exchange_weak(before, bytes_per_second, std::memory_order_relaxed)) {
  }
}

// A link that has been idle stays so until it has output, so the kernel is asked about few links.
bool Link::sends() {
  if (broken() || !open()) return sending_ = false;
  if (has_output()) return sending_ = true;
  sending_ = sending_ && std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) {
               return socket->live() && queued_bytes(socket->fd.get(), SIOCOUTQNSD) > 0;
             });
  return sending_;
}

void Link::set_site_pace(std::uint64_t bytes_per_second) {
  site_pace_ = bytes_per_second;
  pace_sockets();
}

}  // namespace seto::tcp
