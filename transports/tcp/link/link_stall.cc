// Which sockets and routes of a link stand still, and what is sent over others then.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "transports/tcp/link/link.h"

namespace seto::tcp {
namespace {

// Where all sockets of a route stand still, one is dialed again, while the others wait: after an outage they go on by themselves.
constexpr std::uint64_t kTryOneNs = 2'000'000'000;
// Where another socket of the route works for so long, one that does not is dead.
constexpr std::uint64_t kDeadNs = 5'000'000'000;
// A socket sends so much in its first two or three round trips.
constexpr std::uint32_t kPadding = 48 << 10;
constexpr std::byte kNothing[kPadding]{};

using Sockets = std::vector<std::unique_ptr<LinkSocket>>;

resume::PathMovement::Seen movement_of(const PathPipe& pipe) {
  const TcpAcknowledged seen = pipe.acknowledged();
  return {seen.bytes, seen.in_flight, seen.sent_in_vain};
}

void queue_padding(LinkSocket& socket, std::uint32_t length) {
  Frame frame;
  frame.set_kind(FrameKind::padding);
  frame.length = length;
  socket.own.push({frame, kNothing, nullptr, nullptr});
}

// One socket of each other route sends an empty frame, which the kernel of the peer acknowledges. (A frame that tells what was
// heard would count as progress of the link at the peer.) Returns the number of frames.
std::size_t ask_other_routes(const Sockets& sockets, std::size_t route) {
  std::uint32_t asked = 1U << route;
  for (const auto& one : sockets) {
    if (!one->live() || one->stalled || (asked & 1U << one->route) != 0) continue;
    asked |= 1U << one->route;
    queue_padding(*one, 0);
  }
  return static_cast<std::size_t>(std::popcount(asked)) - 1;
}

// The peer's kernel has acknowledged something over another route since that was asked.
bool another_route_answers(const Sockets& sockets, std::size_t route) {
  return std::any_of(sockets.begin(), sockets.end(), [route](const auto& one) {
    return one->route != route && one->live() && !one->stalled && one->movement.was_answered();
  });
}

}  // namespace

// A path that is slow is none that stands still: the peer's kernel acknowledges some of it. Where no frame has come that was sent
// after the oldest one, the peer may just not read: then its kernel answers, and nothing is sent in vain. A path that stands
// still may go on later: then its copies are dropped. Openings go over it nevertheless, and are found here again.
void Link::look_for_stall(std::uint64_t now_ns) {
  if (kept_ == nullptr || now_ns < stall_look_ns()) return;
  const bool begins = looked_ns_ <= progress_ns_;
  looked_ns_ = now_ns;
  const std::uint64_t oldest = kept_->oldest();
  if (oldest == 0) return;
  Socket& still = *sockets_[kept_->path_of(oldest)];
  if (still.live() && !flow_of(still).used) {
    if (now_ns - progress_ns_ >= stall_ns()) send_again_from(still.route, now_ns);
    return;
  }
  const std::size_t route = still.live() ? still.route : this->route();
  const bool all_routes = has_backup();
  for (const auto& one : sockets_) {
    if (!one->live() || (one->route != route && !all_routes)) continue;
    if (begins && !one->stalled)
      one->movement.begin(movement_of(one->pipe), now_ns);
    else
      one->movement.look(movement_of(one->pipe), now_ns);
  }
  if (begins && all_routes) under_way_ += ask_other_routes(sockets_, route);
  if (route_stands_still(route, now_ns)) {
    // One socket in vain is enough: the oldest frame may have arrived, and only its acknowledgement be lost. Without any, the
    // peer does not read. Where another route answers meanwhile, the kernel's timeout need not be waited for.
    const bool others_answer = all_routes && another_route_answers(sockets_, route);
    if (!any_of_route(route, [&](const Socket& one) {
          return !one.stalled && (one.movement.sends_in_vain(round_trip_ns(), now_ns) ||
                                  (others_answer && one.movement.is_unanswered(stall_ns(), now_ns)));
        }))
      return;
    stall_route(route);
  } else if (!stall_sockets(route, still, now_ns)) {
    return;
  }
  progress_ns_ = now_ns;  // sockets that carry the copies have their own time
}

// Data has left this route for a better one. It holds little of it, and where that was lost, the kernel's timeouts get longer
// with each attempt, while the better route has room.
void Link::send_again_from(std::size_t route, std::uint64_t now_ns) {
  for (const auto& one : sockets_)
    if (one->live() && one->route == route && !one->stalled) kept_->path_broke(one->index);
  progress_ns_ = now_ns;
}

// The oldest frame may wait for a socket that takes it again, so all are looked at. Without a dialer the last one goes on.
bool Link::stall_sockets(std::size_t route, const Socket& of_oldest, std::uint64_t now_ns) {
  bool any = false;
  for (const auto& one : sockets_) {
    if (one->route != route || !one->live() || one->stalled || !one->movement.stands_still(stall_ns(), now_ns)) continue;
    const bool in_vain = one->movement.sends_in_vain(round_trip_ns(), now_ns);
    const bool others = has_whole([&](const Socket& other) { return &other != one.get(); });
    if (!(in_vain && (others || dialer_ != nullptr)) && !(gap_ && others && one.get() == &of_oldest)) continue;
    one->stalled = any = true;
    one->stalled_ns = now_ns;
    kept_->path_broke(one->index);
  }
  return any;
}

// With a backup the looks begin sooner and are closer: it can take over as soon as it is known that this route stands still.
std::uint64_t Link::stall_look_ns() const {
  if (has_backup()) return looked_ns_ > progress_ns_ ? looked_ns_ + stall_ns() / 8 : progress_ns_ + stall_ns() / 2;
  return looked_ns_ > progress_ns_ ? looked_ns_ + stall_ns() / 4 : progress_ns_ + stall_ns();
}

// The padding widens the window of the socket, so that a route that takes over does not begin with 10 segments in a round trip.
void Link::widen(Socket& socket) {
  if (!has_backup() || !far() || !continues()) return;
  queue_padding(socket, kPadding);
  ++under_way_;
}

template <typename Wanted>
bool Link::has_whole(Wanted wanted) const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [&](const auto& one) { return one->live() && !one->stalled && wanted(*one); });
}

bool Link::moves() const {
  return has_whole([](const Socket&) { return true; });
}

bool Link::is_whole(std::size_t route) const {
  return has_whole([route](const Socket& one) { return one.route == route; });
}

template <typename Wanted>
bool Link::any_of_route(std::size_t route, Wanted wanted) const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [&](const auto& one) { return one->live() && one->route == route && wanted(*one); });
}

bool Link::route_stands_still(std::size_t route, std::uint64_t now_ns) const {
  return has_whole([&](const Socket& one) { return one.route != route; }) &&
         !any_of_route(route, [&](const Socket& one) { return !one.movement.stands_still(stall_ns(), now_ns); });
}

// To try one socket after another would take a stall for each. What one of them sends in vain tells later that the route moves.
void Link::stall_route(std::size_t route) {
  for (const auto& one : sockets_) {
    if (!one->live() || one->route != route || one->stalled) continue;
    one->stalled = true;
    one->stalled_ns = monotonic_ns();
    one->route_stalled = one->taken == 0 && one->pipe.in_flight() == 0;
    kept_->path_broke(one->index);
  }
  // The kernel of the peer has acknowledged everything since the look: no socket is left that would show that the route moves.
  if (!any_of_route(route, [](const Socket& one) { return one.stalled && !one.route_stalled; })) route_moves(route);
}

void Link::leave_dead_paths() {
  if (dialer_ == nullptr || !continues()) return;
  const std::uint64_t now = monotonic_ns();
  for (std::size_t route = 0; route < flows_.size(); ++route) {
    const bool works = is_whole(route);
    std::uint64_t& since = works_since_ns_[route];
    since = !works ? 0 : since == 0 ? now : since;
    const auto missing = std::count_if(sockets_.begin(), sockets_.end(), [&](const auto& one) {
      return one->route == route && (!one->live() || one->left) && one->index < wanted_sockets();
    });
    if (!works && missing > 0) continue;  // one is tried
    for (const auto& one : sockets_) {
      if (one->route != route || !one->stalled || one->route_stalled || !is_live(one->index)) continue;
      if (now - std::max(since, one->stalled_ns) < (works ? kDeadNs : kTryOneNs)) continue;
      const resume::PathMovement::Seen seen = movement_of(one->pipe);
      one->movement.look(seen, now);
      one->stalled_ns = now;
      if (!one->movement.stands_still(kTryOneNs, now) || !seen.in_vain || (!works && live_paths() < 2)) continue;
      SETO_LOG(info, "a data socket stands still, and is opened again with short segments");
      leave_path(one->index);
      if (!works) break;
    }
  }
}

void Link::route_moves(std::size_t route) {
  for (const auto& socket : sockets_)
    if (socket->route == route && std::exchange(socket->route_stalled, false)) socket->stalled = false;
}

}  // namespace seto::tcp
