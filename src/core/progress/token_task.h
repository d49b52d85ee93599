#pragma once

#include <functional>
#include <utility>

#include "src/core/progress/task.h"

namespace seto {

// Work that needs the progress token for one step: Progress::run() executes it, perhaps on another thread that holds the token.
class TokenTask final : public Task {
 public:
  explicit TokenTask(std::function<void()> work) : work_(std::move(work)) {}
  Step advance() override {
    work_();
    end({});
    return Step::ended;
  }
  bool inspect() override { return false; }

 private:
  const std::function<void()> work_;
};

}  // namespace seto
