#include "src/core/communicator/collective_task.h"

#include <algorithm>
#include <cstring>

#include "src/core/call/error_feedback.h"

namespace seto {
namespace {

// Steps in one advance(): enough to keep a single operation moving, few enough that other tasks of the context get their turn.
constexpr std::uint32_t kStepsAtOnce = 64;

// Floats of 16 and 8 bits accumulate in float.
std::size_t accumulator_size(DataType type) { return is_integer(type) ? size_of(type) : std::max(size_of(type), sizeof(float)); }

}  // namespace

CollectiveTask::CollectiveTask(Communicator& communicator, const Call& call, BoundShape* shape, std::uint64_t operation,
                               TaskGate* gate, Next next)
    : Task(&communicator.order().tasks(), operation),
      communicator_(communicator),
      shape_(shape),
      limit_(call.deadline_ms, communicator.config()),
      gate_(gate),
      feedback_(call.feedback) {
  if (shape != nullptr) note_ = shape->note;
  if (feedback_ != nullptr && shape != nullptr) shape->executor->expect_residuals();  // may throw, so before expect()
  if (feedback_ != nullptr) feedback_->expect();
  note_.operation = operation;
  run_.operands.input = call.input;
  run_.operands.output = call.output;
  run_.operands.scalar = shape != nullptr ? shape->scalar : nullptr;
  if (call.op == ReduceOp::premul_sum && call.scalar != nullptr) {
    std::memcpy(scalar_, call.scalar, accumulator_size(call.type));
    run_.operands.scalar = scalar_;
  }
  run_.operands.operation = operation;
  const bool sends_first = next == Next::driven && shape != nullptr && shape->first_sends > 0;
  if (shape != nullptr) [[likely]]
    record_.issue(communicator.observability(), shape->recorded, operation, call.mark,
                  sends_first ? RecorderEntry::TimeStamp::later : RecorderEntry::TimeStamp::now);
  else
    record_.issue(communicator.observability(), recorded(call, {}), operation, call.mark);
  if (shape != nullptr) shape->issue();  // last: nothing can throw any more
}

CollectiveTask::LateCall::LateCall(const Call& its_call)
    : call(its_call),
      counts(its_call.counts.begin(), its_call.counts.end()),
      displacements(its_call.displacements.begin(), its_call.displacements.end()) {
  call.counts = counts;
  call.displacements = displacements;
}

void CollectiveTask::bind_late(const Call& call) { late_call_ = std::make_unique<LateCall>(call); }

// Once the shape is known the call cannot be refused any more, except where memory for its residuals is missing.
bool CollectiveTask::bind() {
  Result<BoundShape*> found(nullptr);
  if (!communicator_.bind_late(late_call_->call, note_.operation, found)) return false;
  if (found.ok()) {
    shape_ = found.value();
    if (feedback_ != nullptr) shape_->executor->expect_residuals();
    note_ = shape_->note;
    note_.operation = run_.operands.operation;
    if (late_call_->call.op != ReduceOp::premul_sum) run_.operands.scalar = shape_->scalar;
    shape_->issue();
  } else {
    rejected_ = found.status();
  }
  late_call_.reset();
  communicator_.late_call_ended();
  return true;
}

// A queued task may end before it has begun, and then still holds its feedback.
CollectiveTask::~CollectiveTask() { release_feedback(); }

void CollectiveTask::release_feedback() {
  if (feedback_ == nullptr) return;
  if (run_.operands.residual != nullptr) feedback_->give_back();
  feedback_->forget();
  feedback_.reset();
}

// The call waits for a version, or was rejected. Moved: it has a shape now.
Task::Step CollectiveTask::begin_without_shape() {
  if (late_call_ != nullptr && !bind()) return Step::blocked;
  if (rejected_.ok()) return Step::moved;
  // A rejected operation waits for no data. Many in a row could overwrite their notes before the other ranks read them.
  if (!communicator_.order().peers_keep_up_with(note_.operation) && !(deadline_ && deadline_->passed())) return Step::blocked;
  communicator_.order().begin_rejected(note_, rejected_);
  finish(std::move(rejected_));
  return Step::ended;
}

Task::Step CollectiveTask::begin() {
  // A task that begins after a failure, here or on a peer, sends nothing: a slow rank that received all its data would report
  // success.
  if (communicator_.failures().failed_anywhere()) {
    finish(communicator_.first_failure());
    return Step::ended;
  }
  if ((gate_ != nullptr && !gate_->open()) || !communicator_.order().may_begin(note_.operation)) return Step::blocked;
  if (shape_ == nullptr) [[unlikely]]
    if (const Step step = begin_without_shape(); step != Step::moved) return step;
  // The note of a valid call must not overwrite the note of a rejected call that a slow rank has not read.
  if (!communicator_.order().rejection_was_read(note_.operation) && !(deadline_ && deadline_->passed())) return Step::blocked;
  if (feedback_ != nullptr) {
    if (!feedback_->try_take()) return Step::blocked;
    run_.operands.residual = feedback_->residual();
  }
  communicator_.order().begin(note_);
  begun_ = true;
  record_.begin(gate_ != nullptr || deadline_.has_value());
  if (!StoreTuner::matters(shape_->bytes)) return Step::moved;
  way_ = shape_->stores->next();
  run_.operands.slots = way_.slots;
  run_.operands.results = way_.results;
  started_ticks_ = ticks();
  return Step::moved;
}

// True: all are done.
bool CollectiveTask::run_steps() {
  Executor& executor = *shape_->executor;
  if (record_.unstamped()) {
    const bool done = executor.advance(run_, shape_->first_sends);
    record_.stamp();
    if (done) return true;
  }
  return executor.advance(run_, kStepsAtOnce);
}

Task::Step CollectiveTask::advance() {
  if (!failed_.ok()) return end_after_failure() ? Step::ended : Step::blocked;
  if (!begun_)
    if (const Step step = begin(); step != Step::moved) {
      if (step == Step::blocked) delayed();
      return step;
    }
  const std::uint64_t steps = run_.steps;
  if (run_steps()) {
    if (communicator_.members().suspects()) return Step::blocked;  // the next inspect() finds out more
    if (started_ticks_ != 0) {
      shape_->stores->took(way_, ticks() - started_ticks_);
      communicator_.rates().look();
    }
    finish(shape_->receives ? Status() : communicator_.failures().check_notes(note_));
    return Step::ended;
  }
  return steps != run_.steps ? Step::moved : Step::blocked;
}

// The caller may free its buffers when the call has failed. A peer that still reads them is copying one slice and will finish it
// without help.
bool CollectiveTask::end_after_failure() {
  if (begun_ && !shape_->executor->withdraw(run_)) return false;
  finish(std::move(failed_));
  return true;
}

bool CollectiveTask::inspect() {
  if (!failed_.ok()) return end_after_failure();
  if (!deadline_) deadline_ = Deadline::after_ms(limit_.ms());
  if (communicator_.failed())
    failed_ = communicator_.first_failure();
  else if (begun_)
    failed_ = communicator_.failures().look_around(note_);
  else if (awaits_version())
    communicator_.failures().check_queued_tasks();
  const bool overdue = failed_.ok() && (begun_ || awaits_version()) && deadline_->passed();
  if (begun_ && record_.wanted(overdue || communicator_.failed())) record_.tell(wait());
  if (overdue) failed_ = communicator_.failures().fail_overdue(note_, limit_, waits_for());
  if (failed_.ok()) warn_if_slow();
  return !failed_.ok() && end_after_failure();
}

// The other ranks wait for this one, so the communicator fails.
bool CollectiveTask::give_up(const Status& reason) {
  communicator_.failures().fail(reason, communicator_.rank());
  failed_ = communicator_.first_failure();
  return false;
}

// No other operation is under way that would find out why the agreement does not end.
bool CollectiveTask::awaits_version() const {
  const OperationOrder& order = communicator_.order();
  return late_call_ != nullptr && note_.operation == order.begun() + 1 && order.begun() == order.done();
}

void CollectiveTask::warn_if_slow() {
  const bool is_next =
      begun_ || ((shape_ != nullptr || late_call_ != nullptr) && note_.operation == communicator_.order().begun() + 1);
  if (!slow_.due(limit_.ms()) || !is_next) return;
  communicator_.failures().warn_slow(note_, waits_for(), slow_.seconds(limit_.ms()));
  slow_.silence();
}

WaitReport CollectiveTask::wait() const {
  const Executor::Wait wait = shape_->executor->waits_at(run_);
  return {wait.peer, wait.text, wait.step};
}

std::string CollectiveTask::waits_for() const {
  if (!begun_) return late_call_ != nullptr ? "waits until all ranks agree on the rates between sites" : "has not begun it";
  const Executor::Wait wait = shape_->executor->waits_at(run_);
  const Algorithm& algorithm = *shape_->algorithm;
  const std::string plan = std::string(algorithm.name) + " " + std::string(name_of(algorithm.collective));
  return wait.text + " (" + (wait.step.empty() ? "" : wait.step + ", ") + plan + ")";
}

void CollectiveTask::finish(Status status) {
  // A failed communicator has told its peers that they may reuse their slots, so what was read from them since may be wrong.
  if (communicator_.failed() && status.ok()) status = communicator_.first_failure();
  if (!status.ok()) communicator_.members().peer_group().disregard(note_.operation);
  if (!communicator_.failed()) communicator_.order().complete(note_.operation);
  release_feedback();
  if (shape_ != nullptr) [[likely]]
    shape_->end();
  else if (late_call_ != nullptr)
    communicator_.late_call_ended();
  record_.end(status, communicator_.failed(), deadline_.has_value() || started_ticks_ != 0);
  if (gate_ != nullptr) {
    communicator_.queued().task_ended();
    gate_->ended(status);
  }
  end(std::move(status));
}

}  // namespace seto
