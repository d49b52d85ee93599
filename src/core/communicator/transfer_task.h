#pragma once

#include <optional>

#include "src/core/communicator/collective_task.h"
#include "src/core/communicator/communicator.h"
#include "src/core/launch/point_to_point.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/progress/slow_call_warning.h"
#include "src/core/record/recorder_entry.h"

namespace seto {

// The sends and receives that one rank issued together.
class TransferTask final : public Task {
 public:
  TransferTask(Communicator& communicator, PreparedTransfers prepared, const TransferCall& call, TaskGate* gate);
  // Continues a call that was issued and recorded before.
  TransferTask(Communicator& communicator, PreparedTransfers prepared, const TransferCall& call, const RecorderEntry& record);

  Step advance() override;
  bool inspect() override;
  bool give_up(const Status& reason) override;
  [[nodiscard]] Status in_vain() const override;
  // An all_to_all_v whose messages to and from other ranks all wait for earlier ones has not begun: those of a later one wait,
  // too, or may wait. A copy within this rank does not count, or every exchange of a group would begin at once.
  [[nodiscard]] bool begun() const override { return prepared_.launch == nullptr || prepared_.launch->reached(); }

 private:
  void finish(Status status);
  // The status of the call after its last step.
  Status outcome();
  Status refusal(const TransferLaunch::Refused& refused) const;
  Status look_around(Rank& culprit);
  // The transfers that have not ended: "receive of 4 float from rank 1 was not sent; ...".
  [[nodiscard]] std::string pending() const;
  [[nodiscard]] WaitReport wait() const;
  void warn_if_slow();

  Communicator& communicator_;
  PreparedTransfers prepared_;
  CallDeadline limit_;
  std::optional<Deadline> deadline_;
  bool of_init_;  // the deadline is that of an init
  SlowCallWarning late_;
  TaskGate* gate_;
  std::uint64_t started_ticks_ = 0;
  StoreTuner::Way way_;
  RecorderEntry record_;
  bool begun_ = false;
};

}  // namespace seto
