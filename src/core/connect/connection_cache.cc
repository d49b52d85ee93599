#include "src/core/connect/connection_cache.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace seto {
namespace {

using Pointer = std::shared_ptr<Connection>;

auto place(const PeerContext& peer) { return std::tie(peer.context, peer.process); }
auto full_place(const Pointer& one) { return std::tie(one->peer().context, one->peer().process, one->peer().attempt); }

bool holds(const Attempts& attempts, AttemptId one) { return std::binary_search(attempts.begin(), attempts.end(), one); }

}  // namespace

std::shared_ptr<Connection> KnownConnections::shared_with(const PeerContext& peer, const Attempts& theirs) const {
  auto one =
      std::lower_bound(connections_.begin(), connections_.end(), peer,
                       [](const Pointer& known, const PeerContext& wanted) { return place(known->peer()) < place(wanted); });
  for (; one != connections_.end() && place((*one)->peer()) == place(peer); ++one) {
    const AttemptId attempt = (*one)->peer().attempt;
    if (holds(offered_, attempt) && holds(theirs, attempt)) return *one;
  }
  return nullptr;
}

KnownConnections ConnectionCache::known(const std::string& host, Connections& dropped) {
  const bool other_host = host_ != host;
  host_ = host;
  const auto first_dropped = std::stable_partition(connections_.begin(), connections_.end(),
                                                   [&](const Pointer& one) { return !other_host && !one->dead(); });
  dropped.insert(dropped.end(), std::make_move_iterator(first_dropped), std::make_move_iterator(connections_.end()));
  connections_.erase(first_dropped, connections_.end());
  std::unordered_set<AttemptId> open;
  for (const Pointer& one : connections_) open.insert(one->peer().attempt);
  std::erase_if(recent_, [&](AttemptId attempt) { return open.count(attempt) == 0; });
  const std::size_t left_out = recent_.size() - std::min(recent_.size(), limit_);
  Attempts offered(recent_.begin() + static_cast<std::ptrdiff_t>(left_out), recent_.end());
  std::sort(offered.begin(), offered.end());
  return {connections_, std::move(offered)};
}

void ConnectionCache::keep(const Connections& used, const std::string& host) {
  if (host != host_) return;  // another communicator is made at the same time, under another host name
  std::unordered_set<AttemptId> attempts;
  for (const Pointer& one : used) {
    if (one == nullptr || one->reach() == Reach::process) continue;
    attempts.insert(one->peer().attempt);
    const auto at =
        std::lower_bound(connections_.begin(), connections_.end(), one,
                         [](const Pointer& left, const Pointer& right) { return full_place(left) < full_place(right); });
    if (at == connections_.end() || full_place(*at) != full_place(one)) connections_.insert(at, one);
  }
  std::erase_if(recent_, [&](AttemptId attempt) { return attempts.count(attempt) > 0; });
  recent_.insert(recent_.end(), attempts.begin(), attempts.end());
}

}  // namespace seto
