#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "seto/seto.h"

namespace seto::bench {

// The job that a launcher started, one rank for each process, on any hosts. The library finds it from the environment. Values
// that ranks exchange go through a separate communicator, so that the communicator under test carries nothing else.
class Launched final {
 public:
  // Returns null without a problem if this process is not part of a job.
  static std::unique_ptr<Launched> join(std::string& problem);
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

  // Every rank fills its own part of `all`, which has `size` bytes for each rank, and receives the parts of the others.
  [[nodiscard]] bool gather(void* all, std::size_t size);
  // Ends the gathers of the other ranks too.
  void give_up();

 private:
  Launched(setoComm_t comm, int rank, int ranks) : comm_(comm), rank_(rank), ranks_(ranks) {}

  setoComm_t comm_;
  int rank_;
  int ranks_;
};

}  // namespace seto::bench
