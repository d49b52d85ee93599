#pragma once

#include <memory>
#include <utility>

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto {

// Ends the sleep of a context. Any thread of the process may ring, and so may other processes that were given the descriptor.
class Wakeup final {
 public:
  static Result<std::shared_ptr<const Wakeup>> create();
  // For the descriptor of another process.
  explicit Wakeup(Fd descriptor) : descriptor_(std::move(descriptor)) {}

  // Readable from the first ring() until drain().
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  void ring() const;
  void drain() const;

 private:
  Fd descriptor_;  // eventfd
};

}  // namespace seto
