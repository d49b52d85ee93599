#pragma once

#include <atomic>

#include "src/core/progress/progress.h"
#include "src/core/progress/task.h"
#include "transports/tcp/domain.h"

namespace seto {

// What waits for room in a socket is somebody's task for as long as it waits: without it, a rank that has ended its call would
// leave its peers without what it sent last. It never ends for good, and nobody waits for it: it comes back when output waits
// again.
class OutputTask final : public Task {
 public:
  explicit OutputTask(tcp::Domain& domain) : domain_(domain) {}

  // Output has begun to wait. Neither blocks nor fails, if the progress was prepared. Any thread.
  void begin(Progress& progress) {
    if (!under_way_.exchange(true)) progress.join(*this);
  }

  Step advance() override {
    const bool moved = domain_.pump();
    if (domain_.unsent()) return moved ? Step::moved : Step::blocked;
    under_way_.store(false);
    // Between the two looks output may have begun to wait, and found this task under way.
    return domain_.unsent() && !under_way_.exchange(true) ? Step::moved : Step::ended;
  }
  bool inspect() override { return false; }

 private:
  tcp::Domain& domain_;
  std::atomic<bool> under_way_{false};
};

}  // namespace seto
