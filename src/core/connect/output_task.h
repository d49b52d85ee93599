#pragma once

#include <atomic>

#include "src/core/progress/progress.h"
#include "src/core/progress/task.h"
#include "transports/transport.h"

namespace seto {

// Sends the output of a transport that waits for room. Without this task, peers would miss the last bytes of a rank whose call
// has ended. No thread waits for it. It ends when all output is sent, and begins again when output has to wait.
class OutputTask final : public Task {
 public:
  explicit OutputTask(Transport& transport) : transport_(transport) {}

  [[nodiscard]] bool only_pumps() const override { return true; }
  // Output waits. Neither blocks nor fails after Progress::prepare(). Any thread.
  void begin(Progress& progress) {
    if (!under_way_.exchange(true)) progress.join(*this);
  }

  Step advance() override {
    const bool moved{transport_.progress()};
    if (transport_.unsent()) return moved ? Step::moved : Step::blocked;
    under_way_.store(false);
    // Output may have begun to wait since the check above, while under_way_ was still true.
    return transport_.unsent() && !under_way_.exchange(true) ? Step::moved : Step::ended;
  }
  bool inspect() override { return false; }
  // Never ends for good: the next advance makes progress again.
  bool give_up(const Status&) override { return false; }

 private:
  Transport& transport_;
  std::atomic<bool> under_way_{false};
};

}  // namespace seto
