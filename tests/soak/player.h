#pragma once

#include <map>
#include <memory>

#include "tests/soak/batch.h"
#include "tests/soak/exchange.h"
#include "tests/soak/job.h"

namespace seto::soak {

// One rank in one generation: its acts of the plan, then the ending. Runs on the thread of the rank.
class Player final {
 public:
  // `seat` is a communicator of all ranks, or none if the plan allows that it could not be made.
  Player(const Job& job, int rank, const Seat& seat);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  Problem play();

 private:
  friend class EndingRun;
  [[nodiscard]] Problem perform(const Act& act);
  [[nodiscard]] Problem batch(const Act& act);
  [[nodiscard]] Problem together(const Act& act);
  [[nodiscard]] Problem split(const Act& act);
  [[nodiscard]] Problem drop(const Act& act);
  [[nodiscard]] Problem reject(const Act& act);
  [[nodiscard]] Problem use_alone(int group, std::uint64_t key) const;
  [[nodiscard]] Operation draw(Random& random, int group, std::size_t most_bytes) const;
  [[nodiscard]] const Group& group(int number) const { return job_.plan.groups[static_cast<std::size_t>(number)]; }

  const Job& job_;
  int rank_;                   // rank in the job
  std::map<int, Seat> seats_;  // by number of the group; only those that exist
  std::unique_ptr<Streams> streams_;
};

}  // namespace seto::soak
