#pragma once

#include <optional>

#include "src/core/communicator/collective_task.h"
#include "src/core/communicator/communicator.h"
#include "src/core/progress/slow_call_warning.h"
#include "src/core/record/recorder_entry.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/launch/point_to_point.h"

namespace seto {

// The sends and receives that one rank issued together, as one task.
class TransferTask final : public Task {
 public:
  TransferTask(Communicator& communicator, PreparedTransfers prepared, const TransferCall& call, TaskGate* gate);
  // What goes on with a call that was issued, and recorded, before; the recorder is the calling thread's.
  TransferTask(Communicator& communicator, PreparedTransfers prepared, const TransferCall& call, const TaskRecord& record);

  Step advance() override;
  bool inspect() override;
  [[nodiscard]] Status in_vain() const override;

 private:
  void finish(Status status);
  // After the last step: what became of it.
  Status outcome();
  Status refusal(const TransferLaunch::Refused& refused) const;
  Status look_around(Rank& culprit);
  // "receive of 4 float from rank 1 was not sent; ...": what has not ended.
  [[nodiscard]] std::string pending() const;
  [[nodiscard]] WaitOfCall wait() const;
  void warn_if_late();

  Communicator& communicator_;
  PreparedTransfers prepared_;
  TimeLimit limit_;
  std::optional<Deadline> deadline_;
  bool of_init_;  // that deadline is
  LateWarning late_;
  TaskGate* gate_;
  std::uint64_t started_ticks_ = 0;
  StoreChoice::Way way_;
  TaskRecord record_;
  bool begun_ = false;
};

}  // namespace seto
