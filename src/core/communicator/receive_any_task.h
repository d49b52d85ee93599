#pragma once

#include <optional>

#include "src/core/communicator/transfer_task.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/progress/slow_call_warning.h"
#include "src/core/record/recorder_entry.h"

namespace seto {

// Receives the first message from any rank. It waits for a message that no other receive was issued for, and then runs as a
// receive from that rank.
class ReceiveAnyTask final : public Task {
 public:
  // `wrong`: the failure of the call, if it cannot run.
  ReceiveAnyTask(Communicator& communicator, Status wrong, const ReceiveAnyCall& call, TaskGate* gate);

  Step advance() override;
  bool inspect() override;
  bool give_up(const Status& reason) override;

 private:
  // True: a message has arrived, and receive_ receives it.
  bool find_message();
  // Why no message can arrive any more, or ok.
  Status look_around(Rank& culprit) const;
  [[nodiscard]] WaitReport wait() const;
  void finish(Status status);

  Communicator& communicator_;
  Status wrong_;
  ReceiveAnyCall call_;
  CallDeadline limit_;
  std::optional<Deadline> deadline_;
  SlowCallWarning late_;
  TaskGate* gate_;
  RecorderEntry record_;
  std::optional<TransferTask> receive_;  // once a message has arrived
  bool begun_ = false;
};

}  // namespace seto
