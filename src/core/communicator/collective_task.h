#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/core/communicator/communicator.h"
#include "src/core/progress/call_deadline.h"
#include "src/core/progress/slow_call_warning.h"
#include "src/core/record/recorder_entry.h"

namespace seto {

// Decides when a task may begin, and is told when it has ended: the order of a host stream.
class TaskGate {
 public:
  virtual ~TaskGate() = default;
  [[nodiscard]] virtual bool open() = 0;
  virtual void ended(const Status& status) = 0;
};

// One operation of a communicator, on this rank.
class CollectiveTask final : public Task {
 public:
  // `driven`: the calling thread drives the task next. Then the time of issue is taken while the first message travels: reading
  // the clock takes a tenth of a short call.
  enum class Next : std::uint8_t { unknown, driven };
  CollectiveTask(Communicator& communicator, const Call& call, BoundShape* shape, std::uint64_t operation, TaskGate* gate,
                 Next next = Next::unknown);
  ~CollectiveTask() override;

  // This rank rejects the call. The task still takes its turn and tells the other ranks.
  void reject(Status reason) { rejected_ = std::move(reason); }
  // The call is bound when the task begins, because its version of the rates between sites is not agreed yet.
  void bind_late(const Call& call);

  Step advance() override;
  bool inspect() override;
  bool give_up(const Status& reason) override;
  void delayed() override {
    if (record_.unstamped()) record_.stamp();
  }
  [[nodiscard]] bool begun() const override { return begun_; }

 private:
  // A call that has no shape yet, with its arrays.
  struct LateCall {
    explicit LateCall(const Call& its_call);
    Call call;
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> displacements;
  };

  bool bind();  // false: not yet
  [[nodiscard]] bool awaits_version() const;
  Step begin_without_shape();
  Step begin();  // moved: the operation has begun
  bool run_steps();
  void finish(Status status);
  void release_feedback();
  bool end_after_failure();
  // Warns if the operation is slow and no operation before it is the cause.
  void warn_if_slow();
  [[nodiscard]] std::string waits_for() const;
  [[nodiscard]] WaitReport wait() const;

  Communicator& communicator_;
  BoundShape* shape_;
  Executor::Run run_;
  Note note_;
  std::unique_ptr<LateCall> late_call_;
  CallDeadline limit_;
  std::optional<Deadline> deadline_;  // set by the first inspect(): reading the clock costs a third of a small call
  SlowCallWarning slow_;
  TaskGate* gate_;
  std::shared_ptr<ErrorFeedback> feedback_;  // null after the end; taken while run_ has its residual
  Status rejected_;
  Status failed_;  // the task ends with this as soon as no peer reads a buffer that it lent
  StoreTuner::Way way_;
  alignas(8) unsigned char scalar_[8];  // for premul_sum: a copy, since the caller's may be freed before the task runs
  std::uint64_t started_ticks_ = 0;     // 0: this size has no choice of stores to measure
  RecorderEntry record_;
  bool begun_ = false;
};

}  // namespace seto
