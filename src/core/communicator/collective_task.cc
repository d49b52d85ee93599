#include "src/core/communicator/collective_task.h"

#include <algorithm>
#include <cstring>

#include "src/core/call/error_feedback.h"

namespace seto {
namespace {

// Work of one advance: enough to keep a lone operation going, little enough that others of the context get their turn.
constexpr std::uint32_t kStepsAtOnce = 64;

// Floats of 16 and 8 bits accumulate in float.
std::size_t accumulator_size(DataType type) { return is_integer(type) ? size_of(type) : std::max(size_of(type), sizeof(float)); }

}  // namespace

CollectiveTask::CollectiveTask(Communicator& communicator, const Call& call, BoundShape* shape, std::uint64_t operation,
                               TaskGate* gate)
    : communicator_(communicator),
      shape_(shape),
      limit_(call.deadline_ms, communicator.config()),
      gate_(gate),
      feedback_(call.feedback) {
  if (shape != nullptr) note_ = shape->note;
  if (feedback_ != nullptr && shape != nullptr) shape->launch->expect_residuals();  // may throw: before anybody counts on it
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
  if (shape != nullptr) [[likely]]
    record_.issue(communicator.seeing(), shape->recorded, operation, call.mark);
  else
    record_.issue(communicator.seeing(), recorded(call, {}), operation, call.mark);
}

// One that a stream has not come to may end without beginning.
CollectiveTask::~CollectiveTask() { leave_feedback(); }

void CollectiveTask::leave_feedback() {
  if (feedback_ == nullptr) return;
  if (run_.operands.residual != nullptr) feedback_->give_back();
  feedback_->forget();
  feedback_.reset();
}

Task::Step CollectiveTask::begin() {
  // Queued after a failure, it sends nothing: a late rank that had all parts of it would take it for done.
  if (gate_ != nullptr && communicator_.failed()) {
    finish(communicator_.first_failure());
    return Step::ended;
  }
  if ((gate_ != nullptr && !gate_->open()) || !communicator_.may_begin(note_.operation)) return Step::blocked;
  if (!rejected_.ok()) {
    // It waits for nothing else, so that many in a row would take each other's notes away before the others read them.
    if (!communicator_.others_follow(note_.operation) && !(deadline_ && deadline_->passed())) return Step::blocked;
    communicator_.begin_rejected(note_, rejected_);
    finish(std::move(rejected_));
    return Step::ended;
  }
  // Nor may calls that are right overwrite the note of a rejection that a late rank has not read.
  if (!communicator_.rejection_was_read(note_.operation) && !(deadline_ && deadline_->passed())) return Step::blocked;
  if (feedback_ != nullptr) {
    if (!feedback_->try_take()) return Step::blocked;
    run_.operands.residual = feedback_->residual();
  }
  communicator_.begin(note_);
  begun_ = true;
  record_.begin(gate_ != nullptr || deadline_.has_value());
  if (!StoreChoice::matters(shape_->bytes)) return Step::moved;
  way_ = shape_->stores->next();
  run_.operands.slots = way_.slots;
  run_.operands.results = way_.results;
  started_ticks_ = ticks();
  return Step::moved;
}

Task::Step CollectiveTask::advance() {
  if (!failed_.ok()) return ends_with_failure() ? Step::ended : Step::blocked;
  if (!begun_)
    if (const Step step = begin(); step != Step::moved) return step;
  const std::uint64_t round = run_.round;
  const std::uint32_t lane = run_.lane;
  if (shape_->launch->advance(run_, kStepsAtOnce)) {
    if (communicator_.suspects()) return Step::blocked;  // the next look around knows more
    if (started_ticks_ != 0) shape_->stores->took(way_, ticks() - started_ticks_);
    finish(shape_->launch->receives() ? Status() : communicator_.compare_notes(note_));
    return Step::ended;
  }
  return round != run_.round || lane != run_.lane ? Step::moved : Step::blocked;
}

// The caller may free its buffers once the call has failed. A peer that still reads them is in the middle of a slice, and needs
// nobody to end it.
bool CollectiveTask::ends_with_failure() {
  if (begun_ && !shape_->launch->withdraw(run_)) return false;
  finish(std::move(failed_));
  return true;
}

bool CollectiveTask::inspect() {
  if (!failed_.ok()) return ends_with_failure();
  if (!deadline_) deadline_ = Deadline::after_ms(limit_.ms());
  if (communicator_.failed())
    failed_ = communicator_.first_failure();
  else if (begun_)
    failed_ = communicator_.look_around(note_);
  const bool overdue = failed_.ok() && begun_ && deadline_->passed();
  if (begun_ && record_.wanted(overdue || communicator_.failed())) record_.tell(wait());
  if (overdue) failed_ = communicator_.overdue(note_, limit_, waits_for());
  if (failed_.ok()) warn_if_late();
  return !failed_.ok() && ends_with_failure();
}

void CollectiveTask::warn_if_late() {
  const bool at_the_front = begun_ || (shape_ != nullptr && note_.operation == communicator_.begun() + 1);
  if (!late_.due(limit_.ms()) || !at_the_front) return;
  communicator_.warn_of(note_, begun_ ? waits_for() : "has not begun it", late_.seconds(limit_.ms()));
  late_.silence();
}

WaitOfCall CollectiveTask::wait() const {
  const HostLaunch::Wait wait = shape_->launch->waits_at(run_);
  return {wait.peer, wait.text, wait.step};
}

std::string CollectiveTask::waits_for() const {
  const HostLaunch::Wait wait = shape_->launch->waits_at(run_);
  const Algorithm& algorithm = *shape_->algorithm;
  const std::string plan = std::string(algorithm.name) + " " + std::string(name_of(algorithm.collective));
  return wait.text + " (" + (wait.step.empty() ? "" : wait.step + ", ") + plan + ")";
}

void CollectiveTask::finish(Status status) {
  // Who aborts has told the others that they may use their slots again: what was read of them since may be anything.
  if (communicator_.failed() && status.ok()) status = communicator_.first_failure();
  if (!status.ok()) communicator_.circle_->disregard(note_.operation);
  if (!communicator_.failed()) communicator_.complete(note_.operation);
  leave_feedback();
  record_.end(status, communicator_.failed(), deadline_.has_value() || started_ticks_ != 0);
  if (gate_ != nullptr) {
    communicator_.task_ended();
    gate_->ended(status);
  }
  end(std::move(status));
}

}  // namespace seto
