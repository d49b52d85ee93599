// How many sockets of a far link are open, and how many of them carry frames.

#include <algorithm>

#include "src/base/log.h"
#include "transports/tcp/link/link.h"

namespace seto::tcp {

// Places for sockets that may be opened later. Both ends have equally many: paths have the numbers of their places.
void Link::add_spares() {
  places_.first = sockets_.size();
  if (!adapts_ || !continues() || places_.first < 2 || routes() > 1) return;
  const std::size_t most = std::min<std::size_t>(kMostSockets, 2 * places_.first);
  while (sockets_.size() < most) {
    sockets_.push_back(std::make_unique_for_overwrite<Socket>());
    sockets_.back()->index = static_cast<std::uint32_t>(sockets_.size() - 1);
    sockets_.back()->broken = true;
  }
  places_.peer_wants = places_.first;
  count_ = std::make_unique<SocketCount>(places_.first, most);
}

std::size_t Link::wanted_sockets() const {
  if (count_ == nullptr) return sockets_.size() - rails();
  return std::min(std::max(count_->wanted(), places_.peer_wants), places_.limit);
}

// Each end decides which sockets carry what it sends. To open one needs the end that dials, which may be the other one.
void Link::count_sockets(bool held_back, std::uint64_t now_ns) {
  RouteFlow& flow = flows_.front();
  SocketCount::Look look;
  look.bytes = flow.sampler->latest_bytes();
  look.passed_ns = flow.sampler->latest_ns();
  look.waited = !std::exchange(flow.was_empty, false);
  const bool no_queue = flow.flight == nullptr || flow.flight->has_no_queue();
  look.starved = look.waited && !held_back && site_pace_ == 0 && no_queue;
  for (const auto& socket : sockets_) {
    if (!socket->live()) continue;
    ++look.open;
    if (!socket->stalled && !stands_by(*socket)) ++look.carrying;
  }
  look.now_ns = now_ns;
  const std::size_t wanted = count_->wanted();
  if (!count_->take(look)) return;
  choose_carriers();
  SETO_LOG(debug, "%zu sockets carry frames of a far link, %zu should be open", count_->used(), count_->wanted());
  if (count_->wanted() == wanted) return;
  Frame frame;
  frame.set_kind(FrameKind::sockets);
  frame.mark = count_->wanted();
  queue_urgent(frame);
  if (count_->wanted() > wanted) open_more();
}

void Link::open_more() {
  places_.limit = kMostSockets;
  if (dialer_ != nullptr && !partly_ended_) dialer_->paths_broke();
}

// Frames of several sockets arrive in any order: the latest counts.
void Link::hear_sockets(const Frame& frame) {
  if (count_ == nullptr || frame.sequence < places_.peer_wanted_at) return;
  places_.peer_wanted_at = frame.sequence;
  const std::size_t wanted = std::min<std::size_t>(frame.mark, sockets_.size());
  if (std::exchange(places_.peer_wants, wanted) < wanted) open_more();
}

void Link::give_up_place(std::size_t path) {
  if (path >= places_.first) places_.limit = std::min(places_.limit, path);
}

// The first sockets that work. Where fewer work than should carry, all do.
void Link::choose_carriers() {
  const std::size_t before = std::exchange(places_.carriers, kMostSockets);
  if (count_ == nullptr) return;
  std::size_t left = count_->used();
  for (const auto& socket : sockets_) {
    if (!socket->live() || socket->stalled || --left > 0) continue;
    places_.carriers = socket->index + 1;
    break;
  }
  if (places_.carriers != before) pace_sockets();
}

}  // namespace seto::tcp
