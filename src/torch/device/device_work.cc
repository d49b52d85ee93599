#include "src/torch/device/device_work.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "src/torch/device/device_communicator.h"
#include "src/torch/device/native_stream.h"
#include "src/torch/errors.h"

namespace seto::torch_backend {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The pauses between looks at an event, for whose end CUDA has no wait with a deadline: short ones first, because most waits are
// short.
constexpr microseconds kFirstPause{20};
constexpr microseconds kLongestPause{1000};

// The library stops a kernel that is overdue, and then asks it for what it waited, before it reports the failure.
constexpr milliseconds kUntilOverdueIsKnown{2000};

}  // namespace

DeviceWork::DeviceWork(c10::Device device, int rank, const What& what, std::vector<at::Tensor> results,
                       const std::optional<std::vector<at::Tensor>>& inputs)
    : Work(nullptr, rank, what, std::move(results), inputs), device_(device), blocks_(what.type == c10d::OpType::BARRIER) {}

void DeviceWork::launched(std::shared_ptr<DeviceCommunicator> communicator, const c10::Stream& stream, milliseconds limit) {
  limit_ = Clock::now() + limit;
  captured_ = is_capturing(stream);
  stream_ = stream;
  end_.emplace(stream.device_type());
  end_->record(stream);
  communicator_ = std::move(communicator);
  // The profile of the host ends here: it shows the time of the call, and the profile of the device shows the kernel.
  if (const auto recorded = std::exchange(recordFunctionEndCallback_, nullptr)) recorded();
}

void DeviceWork::complete(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (completed_) return;
  exception_ = std::move(failure);
  completed_ = true;
  cv_.notify_all();
}

bool DeviceWork::isCompleted() {
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return true;
  }
  if (communicator_ == nullptr) return false;
  if (captured_) return true;
  // In this order: a kernel that was stopped because of a failure ends after the failure is known, unless it was overdue.
  const bool ended = end_->query();
  std::exception_ptr failure = communicator_->failure();
  if (failure == nullptr && (!ended || may_be_overdue())) return false;
  complete(std::move(failure));
  return true;
}

bool DeviceWork::may_be_overdue() {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (now < limit_ && !end_seen_) return false;
  if (!end_seen_) end_seen_ = now;
  return now < *end_seen_ + kUntilOverdueIsKnown;
}

bool DeviceWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return exception_ == nullptr && (completed_ || captured_);
}

void DeviceWork::check_failure() {
  {
    const std::lock_guard lock(mutex_);
    if (exception_) std::rethrow_exception(exception_);
    if (completed_) return;
  }
  std::exception_ptr failure = communicator_->failure();
  if (failure == nullptr) return;
  complete(failure);
  std::rethrow_exception(failure);
}

bool DeviceWork::wait(milliseconds timeout) {
  if (communicator_ == nullptr) give_up();
  check_failure();
  end_->block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  if ((blocks_ || timeout > kNoTimeout) && !captured_) wait_on_host(timeout);
  return true;
}

void DeviceWork::wait_on_host(milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  auto look = Clock::now() + milliseconds(kLookMs);
  for (microseconds pause = kFirstPause; !isCompleted(); pause = std::min(2 * pause, kLongestPause)) {
    const auto now = Clock::now();
    if (timeout > kNoTimeout && now >= until) std::rethrow_exception(exception_of(setoTimeout, timeout_text(timeout)));
    if (now >= look) {
      communicator_->look_for_interrupts();
      look = now + milliseconds(kLookMs);
    }
    std::unique_lock lock(mutex_);
    cv_.wait_for(lock, pause, [&] { return completed_; });
  }
  check_failure();
}

void DeviceWork::abort() {
  if (communicator_ != nullptr) communicator_->abort();
}

// The future is complete from the begin, as those of torch's other backends for devices are: its callbacks run on streams that
// wait for the end. Made on the stream of the communicator, it waits for this work and for those that were issued since.
c10::intrusive_ptr<c10::ivalue::Future> DeviceWork::getFuture() {
  if (communicator_ == nullptr) give_up();
  const std::lock_guard lock(mutex_);
  if (future_ != nullptr) return future_;
  future_ = new_future({device_});
  if (exception_) {
    future_->setError(exception_);
  } else {
    const c10::StreamGuard on(*stream_);
    future_->markCompleted(value());
  }
  return future_;
}

}  // namespace seto::torch_backend
