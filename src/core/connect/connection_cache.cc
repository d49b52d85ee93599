#include "src/core/connect/connection_cache.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace seto {
namespace {

using Pointer = std::shared_ptr<Connection>;

auto place(const PeerAddress& peer) { return std::tie(peer.context, peer.process); }
auto full_place(const Pointer& one) { return std::tie(one->peer().context, one->peer().process, one->peer().attempt); }

bool holds(const Attempts& attempts, AttemptId one) { return std::binary_search(attempts.begin(), attempts.end(), one); }

}  // namespace

std::shared_ptr<Connection> KnownConnections::shared_with(const PeerAddress& peer, const Attempts& theirs) const {
  auto one =
      std::lower_bound(connections_.begin(), connections_.end(), peer,
                       [](const Pointer& known, const PeerAddress& wanted) { return place(known->peer()) < place(wanted); });
  for (; one != connections_.end() && place((*one)->peer()) == place(peer); ++one) {
    const AttemptId attempt = (*one)->peer().attempt;
    if (holds(offered_, attempt) && holds(theirs, attempt)) return *one;
  }
  return nullptr;
}

KnownConnections Acquaintances::known(const std::string& host, Connections& gone) {
  const bool elsewhere = host_ != host;
  host_ = host;
  const auto first_gone = std::stable_partition(connections_.begin(), connections_.end(),
                                                [&](const Pointer& one) { return !elsewhere && !one->dead(); });
  gone.insert(gone.end(), std::make_move_iterator(first_gone), std::make_move_iterator(connections_.end()));
  connections_.erase(first_gone, connections_.end());
  std::unordered_set<AttemptId> living;
  for (const Pointer& one : connections_) living.insert(one->peer().attempt);
  std::erase_if(recent_, [&](AttemptId attempt) { return living.count(attempt) == 0; });
  const std::size_t left_out = recent_.size() - std::min(recent_.size(), limit_);
  Attempts offered(recent_.begin() + static_cast<std::ptrdiff_t>(left_out), recent_.end());
  std::sort(offered.begin(), offered.end());
  return {connections_, std::move(offered)};
}

void Acquaintances::keep(const Connections& met, const std::string& host) {
  if (host != host_) return;  // two makings at once
  std::unordered_set<AttemptId> used;
  for (const Pointer& one : met) {
    if (one == nullptr || one->within_process()) continue;
    used.insert(one->peer().attempt);
    const auto at =
        std::lower_bound(connections_.begin(), connections_.end(), one,
                         [](const Pointer& left, const Pointer& right) { return full_place(left) < full_place(right); });
    if (at == connections_.end() || full_place(*at) != full_place(one)) connections_.insert(at, one);
  }
  std::erase_if(recent_, [&](AttemptId attempt) { return used.count(attempt) > 0; });
  recent_.insert(recent_.end(), used.begin(), used.end());
}

std::vector<std::shared_ptr<Neighbour>> Acquaintances::neighbours() const {
  std::vector<std::shared_ptr<Neighbour>> all;
  for (const Pointer& one : connections_)
    if (one->neighbour() != nullptr) all.push_back(one->neighbour());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace seto
