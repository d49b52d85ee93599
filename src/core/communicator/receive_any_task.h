#pragma once

#include <optional>

#include "src/core/progress/slow_call_warning.h"
#include "src/core/record/recorder_entry.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/communicator/transfer_task.h"

namespace seto {

// A receive from whoever sends first: it waits for a message that no other receive was issued for, and is then a receive from
// that rank.
class ReceiveAnyTask final : public Task {
 public:
  // `wrong`: why it cannot run.
  ReceiveAnyTask(Communicator& communicator, Status wrong, const ReceiveAnyCall& call, TaskGate* gate);

  Step advance() override;
  bool inspect() override;

 private:
  bool found();
  // Not ok: nothing will come any more.
  Status look_around(Rank& culprit) const;
  [[nodiscard]] WaitOfCall wait() const;
  void finish(Status status);

  Communicator& communicator_;
  Status wrong_;
  ReceiveAnyCall call_;
  TimeLimit limit_;
  std::optional<Deadline> deadline_;
  LateWarning late_;
  TaskGate* gate_;
  TaskRecord record_;
  std::optional<TransferTask> receive_;  // once its message is there
  bool begun_ = false;
};

}  // namespace seto
