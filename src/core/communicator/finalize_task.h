#pragma once

#include "src/core/communicator/communicator.h"

namespace seto {

// Ends when every rank has completed the operations that this rank has issued, or never will. It is not an operation itself, so
// no rank waits for a rank that does not finalize, and one thread may finalize its ranks one after another.
class FinalizeTask final : public Task {
 public:
  explicit FinalizeTask(Communicator& communicator)
      : communicator_(communicator), deadline_(Deadline::after_ms(communicator.config().operation_timeout_ms)) {}

  Step advance() override;
  bool inspect() override;

 private:
  [[nodiscard]] bool all_completed();

  Communicator& communicator_;
  Deadline deadline_;
  Rank next_ = 0;  // all ranks before it have completed the operations
};

}  // namespace seto
