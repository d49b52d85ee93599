#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/bootstrap/rendezvous/session_state.h"
#include "src/bootstrap/unique_id.h"

namespace seto {

// How long a failed session stays to report the reason to ranks that connect late.
inline constexpr int kLateRankMs = 10'000;

// One session: its state, and what the server keeps for its ranks.
struct Session {
  Session(std::uint64_t its_number, Deadline idle_until) : number(its_number), state(idle_until) {}

  std::uint64_t number;
  SessionState state;
  std::map<Rank, std::uint64_t> connections;
  std::map<Rank, RendezvousAddress> addresses;  // of ranks that forward results
  std::map<Rank, bool> orphans;                 // ranks that get results from the server, not from their parents
  std::shared_ptr<const std::string> result;    // result of the last round, if it went through the tree
  Deadline forget_at = Deadline::never();       // valid once failed
  std::uint64_t bytes = 0;                      // sent and received for this session
};

// The sessions of one id, by number: the n-th init of each rank joins session n. One thread.
class Sessions final {
 public:
  // An id for one communicator has one session, which fails if no rank has joined by `idle_until`.
  Sessions(UniqueId::Serves serves, Deadline idle_until);

  // Finds the session of this rank, or a failure that concerns this rank only.
  [[nodiscard]] Result<Session*> find(const Hello& hello);
  // Removes the session. Its number and its end are kept for ranks that connect late.
  void forget(std::uint64_t number);

  [[nodiscard]] const std::map<std::uint64_t, std::unique_ptr<Session>>& open() const { return open_; }

 private:
  // No job needs more sessions at one time, or more kept ends.
  static constexpr std::size_t kOpenLimit = 1'024;
  static constexpr std::size_t kEndLimit = 1'024;

  UniqueId::Serves serves_;
  std::map<std::uint64_t, std::unique_ptr<Session>> open_;
  std::map<std::uint64_t, Status> ends_;
};

}  // namespace seto
