#include "src/torch/work.h"

#include <algorithm>

#include "src/torch/communicator.h"
#include "src/torch/errors.h"
#include "src/torch/completion_threads.h"
#include "src/torch/interrupts.h"

namespace seto::torch_backend {
namespace {

// Before the text of the failure that ended it.
const std::string kFailedBefore = "this group has failed before, and wants to be destroyed and made anew: ";

}  // namespace

Work::Work(std::shared_ptr<Channel> channel, int rank, const What& what, std::vector<at::Tensor> results,
           const std::optional<std::vector<at::Tensor>>& inputs)
    : c10d::Work(rank, what.type, what.title, inputs),
      channel_(std::move(channel)),
      what_(what),
      results_(std::move(results)),
      source_(what.source) {}

// Nobody has waited, and nobody has asked for a future: the user's tensors get what they are to have all the same.
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
      error = exception_of(outcome_, channel_->failed_again() ? kFailedBefore + text_ : text_);
    else
      operands_.copy_back();
  } catch (...) {
    error = std::current_exception();
  }
  // While a waiter still waits: it may end the profile that this writes to.
  if (const auto recorded = std::exchange(recordFunctionEndCallback_, nullptr)) recorded();
  Operands kept;  // let go when nobody waits any more: tensors may ask for the GIL, and a waiter may hold it
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
  channel_->forget_ended();
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
    if (bounded && left <= 0)
      std::rethrow_exception(exception_of(setoTimeout, std::string(what_.title == nullptr ? "a call" : what_.title) +
                                                           " has not ended within " + std::to_string(timeout.count()) + " ms"));
    if (stream_ == nullptr) {
      given_up_.store(true, std::memory_order_relaxed);
      TORCH_CHECK_WITH(DistBackendError, false,
                       "seto: this call is part of a batch that has not ended, perhaps because of an error in it; the batch is "
                       "dropped: none of its calls is made");
    }
    if (!first) channel_->look_for_interrupts();
    const auto turn = static_cast<std::uint32_t>(bounded ? std::min<std::int64_t>(left, kLookMs) : kLookMs);
    const setoResult_t result = setoStreamWait(stream_, position_, turn);
    // Of the wait, not of the call: in a forked child.
    if (result != setoSuccess && result != setoTimeout && !has_ended())
      std::rethrow_exception(exception_of(result, setoGetLastError(nullptr)));
  }
  settle();
  channel_->forget_ended();
  const std::lock_guard lock(mutex_);
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void Work::synchronize() { wait(kNoTimeout); }

void Work::abort() { channel_->abort(); }

std::vector<at::Tensor> Work::result() {
  TORCH_CHECK(isCompleted(), "seto: the result of a work can be had when it has ended: wait() first");
  return results_;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  std::unique_lock lock(mutex_);
  if (future_ != nullptr) return future_;
  c10::TypePtr type = c10::ListType::create(c10::TensorType::get());
  if (lists_ > 1) type = c10::ListType::create(std::move(type));
  future_ = c10::make_intrusive<c10::ivalue::Future>(std::move(type));
  if (completed_) {
    if (exception_)
      future_->setError(exception_);
    else
      future_->markCompleted(value());
  } else if (ended_) {
    Finisher::of_process().take(c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(this));
  }
  return future_;
}

}  // namespace seto::torch_backend
