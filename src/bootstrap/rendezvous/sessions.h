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

// How long a failed rendezvous stays to tell latecomers the reason.
inline constexpr int kLatecomerMs = 10'000;

// One init by an id: its room, and what the server keeps for its members.
struct Gathering {
  Gathering(std::uint64_t its_number, Deadline idle_until) : number(its_number), room(idle_until) {}

  std::uint64_t number;
  RendezvousRoom room;
  std::map<Rank, std::uint64_t> connections;
  std::map<Rank, Contact> contacts;           // of ranks that hand results on
  std::map<Rank, bool> orphans;               // that get results from the server, not from their parents
  std::shared_ptr<const std::string> result;  // of the last round, if it went by the tree
  Deadline forget_at = Deadline::never();     // once failed
  std::uint64_t bytes = 0;                    // sent and received for it
};

// Those of one id, by number: rank r's n-th init meets the n-th of the others. One thread.
class Gatherings final {
 public:
  // An id for one communicator has one gathering, which fails if nobody has come by `idle_until`.
  Gatherings(UniqueId::Serves serves, Deadline idle_until);

  // Where this newcomer belongs; a failure for him alone.
  [[nodiscard]] Result<Gathering*> find(const Hello& hello);
  // Its number goes on to say how it ended.
  void forget(std::uint64_t number);

  [[nodiscard]] const std::map<std::uint64_t, std::unique_ptr<Gathering>>& open() const { return open_; }

 private:
  // More at one time, or kept ends, are of no job.
  static constexpr std::size_t kOpenLimit = 1'024;
  static constexpr std::size_t kEndLimit = 1'024;

  UniqueId::Serves serves_;
  std::map<std::uint64_t, std::unique_ptr<Gathering>> open_;
  std::map<std::uint64_t, Status> ends_;
};

}  // namespace seto
