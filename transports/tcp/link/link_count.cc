// How many sockets of a far link are open, and how many of them carry frames.

#include <algorithm>

#include "src/base/log.h"
#include "transports/tcp/link/link.h"

namespace seto::tcp {

// Places for sockets that may be opened later. Both ends have equally many: paths have the numbers of their places.
void Link::add_spares(std::size_t opened) {
  if (!continues() || opened < 2 || routes() > 1 || round_trip_us_ < FlightLimit::kLeastRoundTripUs) return;
  const std::size_t most = std::min<std::size_t>(kMostSockets, 2 * opened);
  while (sockets_.size() < most) {
    sockets_.push_back(std::make_unique_for_overwrite<Socket>());
    sockets_.back()->index = static_cast<std::uint32_t>(sockets_.size() - 1);
    sockets_.back()->broken = true;
  }
  peer_wants_sockets_ = opened;
  count_ = std::make_unique<SocketCount>(opened, most);
}

std::size_t Link::wanted_sockets() const {
  return count_ == nullptr ? sockets_.size() : std::max(count_->wanted(), peer_wants_sockets_);
}

// Each end decides which sockets carry what it sends. To open one needs the end that dials, which may be the other one.
void Link::count_sockets(bool held_back, std::uint64_t now_ns) {
  RouteFlow& flow = flows_.front();
  SocketCount::Look look;
  look.bytes = flow.sampler->latest_bytes();
  look.passed_ns = flow.sampler->latest_ns();
  look.waited = !std::exchange(flow.was_empty, false);
  look.starved = look.waited && !held_back && flow.flight->has_no_queue();
  look.open = static_cast<std::size_t>(std::count_if(sockets_.begin(), sockets_.end(), [this](const auto& socket) {
    return socket->live() && socket->index < count_->wanted();
  }));
  look.now_ns = now_ns;
  const std::size_t wanted = count_->wanted();
  if (!count_->take(look)) return;
  SETO_LOG(debug, "%zu sockets carry frames of a far link, %zu should be open", count_->used(), count_->wanted());
  if (count_->wanted() == wanted) return;
  Frame frame;
  frame.set_kind(FrameKind::sockets);
  frame.mark = count_->wanted();
  queue_urgent(frame);
  if (dialer_ != nullptr) dialer_->paths_broke();
}

void Link::hear_sockets(const Frame& frame) {
  if (count_ == nullptr) return;
  peer_wants_sockets_ = std::min<std::size_t>(frame.mark, sockets_.size());
  if (dialer_ != nullptr) dialer_->paths_broke();
}

// Where none of them works, the others serve.
void Link::choose_carriers() {
  carriers_ = kMostSockets;
  if (count_ == nullptr) return;
  const std::size_t used = count_->used();
  if (std::any_of(sockets_.begin(), sockets_.end(),
                  [used](const auto& one) { return one->index < used && one->live() && !one->stalled; }))
    carriers_ = used;
}

}  // namespace seto::tcp
