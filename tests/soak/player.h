#pragma once

#include <map>
#include <memory>

#include "tests/soak/batch.h"
#include "tests/soak/exchange.h"
#include "tests/soak/job.h"

namespace seto::soak {

// One rank in one generation: the acts of the plan that it has a part in, then the ending. On the thread of the rank.
class Player final {
 public:
  // seat: a communicator of all ranks, or none, if it could not be made in a generation in which that may happen.
  Player(const Job& job, int rank, const Seat& seat);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  Trouble play();

 private:
  friend class Finale;
  [[nodiscard]] Trouble perform(const Act& act);
  [[nodiscard]] Trouble batch(const Act& act);
  [[nodiscard]] Trouble together(const Act& act);
  [[nodiscard]] Trouble split(const Act& act);
  [[nodiscard]] Trouble drop(const Act& act);
  [[nodiscard]] Trouble reject(const Act& act);
  [[nodiscard]] Trouble use_alone(int group, std::uint64_t key) const;
  [[nodiscard]] const Group& group(int number) const { return job_.plan.groups[static_cast<std::size_t>(number)]; }

  const Job& job_;
  int rank_;                   // of the job
  std::map<int, Seat> seats_;  // by number of the group; those that live
  std::unique_ptr<Streams> streams_;
};

}  // namespace seto::soak
