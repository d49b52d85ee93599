#pragma once

#include <cstdint>

#include "src/base/clock.h"
#include "src/base/status.h"

namespace seto {

// A place in the order in which this process makes communicators of the job that it was started in: the n-th here meets the n-th
// of the others, whatever threads they are made on. Taken when the call comes, and used up even if it fails before it has met
// anybody, for the calls of the others are; ends with the object at the latest.
// Mutable state of the process: whose turn it is. A forked child may not use the library, so it never looks at its copy.
class JobTurn final {
 public:
  JobTurn();
  JobTurn(const JobTurn&) = delete;
  JobTurn& operator=(const JobTurn&) = delete;
  ~JobTurn() { end(); }

  // 0 the first time.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] Status wait(Deadline until) const;
  // Once the communicator is made, or never will be.
  void end();

 private:
  std::uint64_t number_;
  bool ended_ = false;
};

}  // namespace seto
