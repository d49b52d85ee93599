#pragma once

#include <cstdint>

#include "src/base/clock.h"
#include "src/base/status.h"

namespace seto {

// A position in the order in which this process makes communicators of its job: the n-th call here matches the n-th call of every
// other process, on any thread. The constructor takes the position. It is used up even if the call fails early, because the calls
// of the other processes use theirs. The position ends with the object at the latest.
// The position that is served now is mutable state of the process. A forked child may not use the library, so it never reads its
// copy.
class InitOrder final {
 public:
  InitOrder();
  InitOrder(const InitOrder&) = delete;
  InitOrder& operator=(const InitOrder&) = delete;
  ~InitOrder() { end(); }

  // 0 for the first communicator.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] Status wait(Deadline until) const;
  // To be called once the communicator is made, or has failed.
  void end();

 private:
  std::uint64_t number_;
  bool ended_ = false;
};

}  // namespace seto
