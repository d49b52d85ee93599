#pragma once

#include <optional>

#include "src/core/communicator/communicator.h"
#include "src/core/progress/slow_call_warning.h"
#include "src/core/record/recorder_entry.h"
#include "src/core/progress/call_deadline.h"

namespace seto {

// What must happen before a task may begin, and hears of its end: a stream's order.
class TaskGate {
 public:
  virtual ~TaskGate() = default;
  [[nodiscard]] virtual bool open() = 0;
  virtual void ended(const Status& status) = 0;
};

// One operation of a communicator, on this rank.
class CollectiveTask final : public Task {
 public:
  CollectiveTask(Communicator& communicator, const Call& call, BoundShape* shape, std::uint64_t operation, TaskGate* gate);
  ~CollectiveTask() override;

  // A call that this rank rejects: it takes its number, and tells the others.
  void reject(Status reason) { rejected_ = std::move(reason); }

  Step advance() override;
  bool inspect() override;

 private:
  Step begin();  // moved: it may go on
  void finish(Status status);
  void leave_feedback();
  bool ends_with_failure();
  // It has not ended for long, and nothing before it is to blame.
  void warn_if_late();
  [[nodiscard]] std::string waits_for() const;
  [[nodiscard]] WaitOfCall wait() const;

  Communicator& communicator_;
  BoundShape* shape_;
  HostLaunch::Run run_;
  Note note_;
  TimeLimit limit_;
  std::optional<Deadline> deadline_;  // set when somebody first looks around: reading the clock costs a third of a small call
  LateWarning late_;
  TaskGate* gate_;
  std::shared_ptr<ErrorFeedback> feedback_;  // null once it has ended; run_ has its residual: taken
  Status rejected_;
  Status failed_;  // it ends with this as soon as nobody reads what it lent
  StoreChoice::Way way_;
  alignas(8) unsigned char scalar_[8];  // of pre-multiplied sums: the caller's may be gone when the task runs
  std::uint64_t started_ticks_ = 0;     // 0: this size has no choice of stores to measure
  TaskRecord record_;
  bool begun_ = false;
};

}  // namespace seto
