#pragma once

#include "src/core/communicator/communicator.h"

namespace seto {

// Ends when every rank has ended what this rank has issued, or will never. No operation of its own: a rank that is never
// finalized holds up nobody, and one thread may finalize its ranks one after another.
class DrainTask final : public Task {
 public:
  explicit DrainTask(Communicator& communicator)
      : communicator_(communicator), deadline_(Deadline::after_ms(communicator.config().operation_timeout_ms)) {}

  Step advance() override;
  bool inspect() override;

 private:
  [[nodiscard]] bool all_done();

  Communicator& communicator_;
  Deadline deadline_;
  Rank next_ = 0;  // those before it are done
};

}  // namespace seto
