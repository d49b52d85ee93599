// The rate of a link, as the kernel sees it, and the pace of its sockets.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "src/base/clock.h"
#include "transports/tcp/link/link.h"
#include "transports/tcp/link/tcp_connection.h"

namespace seto::tcp {

std::vector<OpenSocket> Link::open_sockets() const {
  std::vector<OpenSocket> all;
  const std::lock_guard lock(descriptors_mutex_);
  for (std::size_t i = 0; i < lasting_sockets_.load(std::memory_order_acquire); ++i)
    if (const PathPipe& pipe = sockets_[i]->pipe; pipe.valid()) all.push_back({sockets_[i]->route, pipe.delivery(), pipe.way()});
  return all;
}

// Only while output is under way, and rarely: one system call for each socket and round trip. What is told and shown is the sum
// of the routes in use, once the best one is known.
void Link::measure() {
  const std::uint64_t now = monotonic_ns();
  bool looked = false;
  bool is_full = false;
  double rate = 0;
  double carried = 0;
  std::uint32_t round_trip_us = 0;
  for (std::size_t route = 0; route < flows_.size() && !broken(); ++route) {
    const RouteFlow& flow = flows_[route];
    if (!flow.used) continue;
    const std::uint64_t before = flow.measurements();
    looked = measure(route, now) || looked;
    is_full = is_full || flow.measurements() != before;
    rate += flow.rate();
    carried += flow.sampler->carried();
    round_trip_us = std::max(round_trip_us, flow.sampler->round_trip_us());
  }
  if (!looked || broken()) return;
  if (flows_[route()].rate() == 0) rate = 0;
  seen_.take(rate, is_full, carried, now);
  tell_rate(rate, round_trip_us);
}

// False: it is too soon.
bool Link::measure(std::size_t route, std::uint64_t now_ns) {
  RouteFlow& flow = flows_[route];
  if (!flow.sampler->due(now_ns)) return false;
  std::array<std::optional<TcpDelivery>, kMostSockets> seen;
  std::size_t count = 0;
  std::size_t resting = 0;
  for (const auto& socket : sockets_) {
    if (socket->route != route || count == seen.size()) continue;
    if (socket->live()) seen[count] = socket->pipe.delivery();
    if (stands_by(*socket) || (!socket->live() && socket->index >= wanted_sockets())) {
      ++resting;
      if (seen[count]) seen[count]->app_limited = true;
    }
    ++count;
  }
  const std::span<const std::optional<TcpDelivery>> all(seen.data(), count);
  const bool dry = std::exchange(flow.ran_dry, false);
  const bool held_back = std::exchange(flow.was_held_back, flow.held_back) && !dry;
  (void)flow.sampler->take({all, dry, now_ns, held_back, resting});
  if (flow.flight != nullptr) limit_flight(route, all, held_back, now_ns);
  if (count_ != nullptr) count_sockets(held_back, now_ns);
  return true;
}

void Link::tell_rate(double rate, std::uint32_t round_trip_us) {
  if (rate == 0) return;
  if (rate <= kTellRate * told_rate_ && rate * kTellRate >= told_rate_) return;
  told_rate_ = rate;
  Frame frame;
  frame.set_kind(FrameKind::rate);
  frame.mark = static_cast<std::uint64_t>(rate);
  frame.size = round_trip_us;
  queue_urgent(frame);
}

void Link::limit_flight(std::size_t route, std::span<const std::optional<TcpDelivery>> seen, bool held_back,
                        std::uint64_t now_ns) {
  RouteFlow& flow = flows_[route];
  FlightLimit::Look look{flow.sampler->latest_bytes(), flow.sampler->latest_ns(), 0, held_back, 0, now_ns};
  for (const auto& socket : sockets_)
    if (socket->live() && !socket->stalled && socket->route == route) look.in_flight += socket->pipe.in_flight();
  std::uint64_t beyond_loss = 0;
  for (const auto& socket : seen) {
    if (!socket) continue;
    beyond_loss += socket->beyond_loss;
    if (socket->now_us != 0 && (look.round_trip_us == 0 || socket->now_us < look.round_trip_us))
      look.round_trip_us = socket->now_us;
  }
  flow.beyond_loss = (flow.beyond_loss + beyond_loss) / 2;
  look.in_flight -= std::min(look.in_flight, flow.beyond_loss);
  flow.flight->take(look);
  if (route == this->route()) seen_.take_round_trip(flow.flight->base_us());
  pace_sockets();
}

// Each call of the kernel is saved where little changes, but no socket keeps a pace that is above its share of the limit.
void Link::pace_sockets() {
  // Routes in use divide the share of a site by their rates; by their sockets, where one is unknown.
  double of_all = 0;
  bool known = true;
  for (const RouteFlow& flow : flows_) {
    if (!flow.used) continue;
    of_all += flow.rate();
    known = known && flow.rate() > 0;
  }
  const auto carrying = std::count_if(sockets_.begin(), sockets_.end(),
                                      [this](const auto& socket) { return carries(*socket) && !stands_by(*socket); });
  const auto all = static_cast<double>(std::max<std::ptrdiff_t>(1, carrying));
  for (std::size_t route = 0; route < flows_.size(); ++route) {
    RouteFlow& flow = flows_[route];
    const auto live = static_cast<std::size_t>(std::count_if(sockets_.begin(), sockets_.end(), [&](const auto& socket) {
      return socket->live() && socket->route == route && !stands_by(*socket);
    }));
    const std::size_t own = std::max<std::size_t>(1, live);
    const double part = !flow.used ? 1 : known && flows_.size() > 1 ? flow.rate() / of_all : static_cast<double>(own) / all;
    const double of_site = static_cast<double>(site_pace_) * part;
    const double of_flight = flow.used && flow.flight != nullptr ? flow.flight->pace() : 0;
    const SocketPace pace = pace_of_socket(of_flight, of_site, own);
    if (!pace.differs_from(flow.pace)) continue;
    flow.pace = pace;
    const std::uint64_t most =
        pace.bytes_per_second == 0 ? RouteFlow::kUnlimited : static_cast<std::uint64_t>(pace.bytes_per_second);
    for (const auto& socket : sockets_)
      if (socket->route == route) socket->pipe.limit_pace(most);
  }
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
  sending_ = sending_ && std::any_of(sockets_.begin(), sockets_.end(),
                                     [](const auto& socket) { return socket->live() && socket->pipe.unsent() > 0; });
  return sending_;
}

void Link::set_site_pace(std::uint64_t bytes_per_second) {
  site_pace_ = bytes_per_second;
  pace_sockets();
}

}  // namespace seto::tcp
