#include "src/core/party.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace seto {
namespace {

struct Invitation {
  std::shared_ptr<Party> party;
  std::size_t still_to_come = 0;
  Deadline until;
};

struct Invitations {
  std::mutex mutex;
  std::map<AttemptId, Invitation> by_attempt;
};

// Leaked: inits of threads that outlive main() may still look.
Invitations& invitations() {
  static auto* const all = new Invitations;
  return *all;
}

}  // namespace

std::shared_ptr<Party> Party::of_process(AttemptId attempt, std::size_t guests, Deadline until) {
  if (guests == 1) return std::make_shared<Party>();
  Invitations& all = invitations();
  std::vector<std::shared_ptr<Party>> over;  // closes its connections without the lock
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.by_attempt, [&](auto& entry) {
    const bool late = entry.second.until.passed();
    if (late) over.push_back(std::move(entry.second.party));
    return late;
  });
  auto [found, fresh] = all.by_attempt.try_emplace(attempt, Invitation{nullptr, guests, until.unless(nullptr)});
  if (fresh) found->second.party = std::make_shared<Party>();
  std::shared_ptr<Party> party = found->second.party;
  if (--found->second.still_to_come == 0) all.by_attempt.erase(found);
  return party;
}

void Party::bring(const std::string& process, const Result<Connections>& met) {
  {
    const std::lock_guard lock(mutex_);
    met_.emplace(process, met);
  }
  brought_.notify_all();
}

Result<std::shared_ptr<Connection>> Party::connection_to(const PeerAddress& peer, Deadline until) {
  std::unique_lock lock(mutex_);
  auto met = met_.find(peer.process);
  while (met == met_.end()) {
    if (until.passed())
      return failure(Code::timeout, "no rank of this process has met its process before the deadline of the init");
    brought_.wait_for(lock, std::chrono::milliseconds(until.wait_ms()));
    met = met_.find(peer.process);
  }
  if (!met->second.ok()) return met->second.status();
  const Connections& connections = met->second.value();
  const auto one = std::find_if(connections.begin(), connections.end(),
                                [&](const auto& each) { return each->peer().context == peer.context; });
  if (one == connections.end()) return failure(Code::remote_error, "its process did not say how its context is reached");
  return *one;
}

}  // namespace seto
