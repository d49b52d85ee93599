#include "src/torch/work.h"

#include <algorithm>

#include "src/torch/communicator.h"
#include "src/torch/completion_threads.h"
#include "src/torch/errors.h"
#include "src/torch/interrupts.h"

namespace seto::torch_backend {
namespace {

// The prefix of the text of a failed work.
const std::string kFailedBefore = "this group has failed before; destroy it and make a new one: ";

}  // namespace

Work::Work(std::shared_ptr<Communicator> communicator, int rank, const What& what, std::vector<at::Tensor> results,
           const std::optional<std::vector<at::Tensor>>& inputs)
    : c10d::Work(rank, what.type, what.title, inputs),
      communicator_(std::move(communicator)),
      what_(what),
      results_(std::move(results)),
      source_(what.source) {}

// No thread waited and no future was requested. The results are still copied to the user's tensors.
Work::~Work() {
  if (ended_ && !completed_) settle();
}

void Work::issued(setoStream_t stream, std::uint64_t position) {
  stream_ = stream;
  position_ = position;
}

bool Work::ended(setoResult_t result, const char* text) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  outcome_ = result;
  text_ = text;
  cv_.notify_all();
  return future_ != nullptr || recordFunctionEndCallback_ != nullptr;
}

bool Work::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Work::settle() {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(settling_, true)) return cv_.wait(lock, [&] { return completed_; });
  }
  std::exception_ptr error;
  try {
    if (outcome_ == setoInvalidArgument)
      error = exception_of(outcome_, text_);
    else if (outcome_ != setoSuccess)
      error = exception_of(outcome_, communicator_->failed_again() ? kFailedBefore + text_ : text_);
    else
      operands_.copy_back();
  } catch (...) {
    error = std::current_exception();
  }
  // Done before a waiting thread returns, because that thread may end the profile to which this writes.
  if (const auto recorded = std::exchange(recordFunctionEndCallback_, nullptr)) recorded();
  Operands kept;  // released after the wait has ended: releasing tensors may need the GIL, which a waiting thread may hold
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    exception_ = error;
    completed_ = true;
    future = future_;
    kept = std::move(operands_);
    cv_.notify_all();
  }
  if (future == nullptr) return;
  if (error)
    future->setError(error);
  else
    future->markCompleted(value());
}

c10::IValue Work::value() const {
  if (lists_ == 1) return results_;
  std::vector<std::vector<at::Tensor>> lists(lists_);
  const std::size_t length = results_.size() / lists_;
  for (std::size_t index = 0; index < results_.size(); ++index) lists[index / length].push_back(results_[index]);
  return lists;
}

bool Work::isCompleted() {
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return true;
  }
  if (!has_ended() && stream_ != nullptr) (void)setoStreamPoll(stream_, position_);
  if (!has_ended()) return false;
  settle();
  communicator_->forget_ended();
  return true;
}

bool Work::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && exception_ == nullptr;
}

bool Work::wait(std::chrono::milliseconds timeout) {
  const bool bounded = timeout > kNoTimeout;
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (bool first = true; !has_ended(); first = false) {
    const std::int64_t left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (bounded && left <= 0) std::rethrow_exception(exception_of(setoTimeout, timeout_text(timeout)));
    if (stream_ == nullptr) give_up();
    if (!first) communicator_->look_for_interrupts();
    const auto turn = static_cast<std::uint32_t>(bounded ? std::min<std::int64_t>(left, kLookMs) : kLookMs);
    const setoResult_t result = setoStreamWait(stream_, position_, turn);
    // The wait failed, not the call: this is a forked child.
    if (result != setoSuccess && result != setoTimeout && !has_ended())
      std::rethrow_exception(exception_of(result, setoGetLastError(nullptr)));
  }
  settle();
  communicator_->forget_ended();
  const std::lock_guard lock(mutex_);
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void Work::give_up() {
  given_up_.store(true, std::memory_order_relaxed);
  C10_THROW_ERROR(DistBackendError,
                  "seto: this call is part of a batch that has not ended, perhaps because of an error in it; the batch is "
                  "dropped, and none of its calls is made");
}

std::string Work::timeout_text(std::chrono::milliseconds timeout) const {
  return std::string(what_.title == nullptr ? "a call" : what_.title) + " has not ended within " +
         std::to_string(timeout.count()) + " ms";
}

void Work::synchronize() { wait(kNoTimeout); }

void Work::abort() { communicator_->abort(); }

std::vector<at::Tensor> Work::result() {
  TORCH_CHECK(isCompleted(), "seto: the result of a work exists only once it has ended: call wait() first");
  return results_;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::new_future(std::vector<c10::Device> devices) const {
  c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
  if (lists_ > 1) type = c10::ListType::create(std::move(type));
  return c10::make_intrusive<c10::ivalue::Future>(std::move(type), std::move(devices));
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  std::unique_lock lock(mutex_);
  if (future_ != nullptr) return future_;
  future_ = new_future({});
  if (completed_) {
    if (exception_)
      future_->setError(exception_);
    else
      future_->markCompleted(value());
  } else if (ended_) {
    CompletionThreads::of_process().take(c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this));
  }
  return future_;
}

}  // namespace seto::torch_backend
