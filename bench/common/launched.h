#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "seto/seto.h"

namespace seto::bench {

// The job that a launcher started, one rank a process, on any hosts; the library finds it from the environment. What ranks tell
// each other goes through a communicator of its own, so that the one under test carries nothing else.
class Launched final {
 public:
  // Null without a problem: this process stands alone.
  static std::unique_ptr<Launched> join(std::string& problem);
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

  // Every rank fills its own part of `all`, which has one of `size` bytes for each, and gets those of the others.
  [[nodiscard]] bool gather(void* all, std::size_t size);
  // Ends the gathers of the others too.
  void give_up();

 private:
  Launched(setoComm_t comm, int rank, int ranks) : comm_(comm), rank_(rank), ranks_(ranks) {}

  setoComm_t comm_;
  int rank_;
  int ranks_;
};

}  // namespace seto::bench
