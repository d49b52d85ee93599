#include "src/torch/device/device_communicator.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <utility>

#include "src/torch/device/device_work.h"
#include "src/torch/device/native_stream.h"
#include "src/torch/errors.h"
#include "src/torch/interrupts.h"

namespace seto::torch_backend {
namespace {

// The pause between looks at the end of the last call, for which CUDA has no wait with a deadline.
constexpr std::chrono::microseconds kPause{200};

}  // namespace

std::shared_ptr<DeviceCommunicator> DeviceCommunicator::make(Communicator::CommunicatorRequest request, c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  TORCH_CHECK_WITH(DistBackendError, !is_capturing(guard.getStream(device)),
                   "seto: the first call of a group on a device makes a communicator, which is not possible while a graph is "
                   "captured: call init_process_group with device_id, or make a call before the capture");
  const c10::Stream stream = guard.getStreamFromGlobalPool(device, true);
  const c10::StreamGuard on(stream);
  // The library uses the context that is current in this thread. The first event makes one current.
  c10::Event event(device.type());
  event.record(stream);
  request.memory = setoMemoryDevice;
  request.name += c10::str(" on ", device);
  std::shared_ptr<SharedContext> context = SharedContext::of_rank(request.global_rank);
  const setoComm_t comm = Communicator::connect(request, *context);
  return std::make_shared<DeviceCommunicator>(std::move(context), comm, stream);
}

DeviceCommunicator::DeviceCommunicator(std::shared_ptr<SharedContext> context, setoComm_t comm, const c10::Stream& stream)
    : context_(std::move(context)), stream_(stream), handle_(native_handle(stream)), comm_(comm) {}

DeviceCommunicator::~DeviceCommunicator() {
  try {
    shut_down();
  } catch (const std::exception&) {  // the device or the wait for it failed
    abort();
  }
}

void DeviceCommunicator::launch(const std::vector<Communicator::Call>& calls, const setoCallConfig_t& config, DeviceWork& work) {
  const c10::impl::VirtualGuardImpl guard(stream_.device_type());
  const c10::Stream current = guard.getStream(stream_.device());
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr, "seto: this group was shut down or aborted");
  c10::Event before(stream_.device_type());
  before.record(current);
  before.block(stream_);
  // Before the calls are issued, so that the memory cannot be reused early if one of them fails.
  work.operands().record_on(stream_);
  issue(calls, {comm_, handle_, &config});
  {
    const c10::StreamGuard on(stream_);
    work.operands().copy_back();
  }
  work.launched(shared_from_this(), stream_, std::chrono::milliseconds(config.deadlineMs));
  if (is_capturing(stream_)) return;
  if (!last_) last_.emplace(stream_.device_type());
  last_->record(stream_);
}

void DeviceCommunicator::issue(const std::vector<Communicator::Call>& calls, const Communicator::IssueTarget& target) const {
  setoResult_t result = setoSuccess;
  std::string text;
  const auto note = [&](setoResult_t one) {
    if (one == setoSuccess || result != setoSuccess) return;
    result = one;
    text = setoGetLastError(nullptr);
  };
  if (calls.size() == 1) {
    note(calls.front()(target));
  } else {
    check(setoGroupStart(), "a group of calls");
    for (const Communicator::Call& call : calls) note(call(target));
    note(setoGroupEnd());
  }
  if (result != setoSuccess) std::rethrow_exception(exception_of(result, text));
}

setoResult_t DeviceCommunicator::error() const {
  const std::lock_guard lock(mutex_);
  setoResult_t result = setoInvalidUsage;
  if (comm_ != nullptr) (void)setoCommGetAsyncError(comm_, &result);
  return result;
}

std::exception_ptr DeviceCommunicator::failure() const {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return exception_of(setoInvalidUsage, "this group was shut down or aborted");
  setoResult_t result = setoSuccess;
  if (setoCommGetAsyncError(comm_, &result) != setoSuccess || result == setoSuccess || result == setoInProgress) return nullptr;
  return exception_of(result, setoGetLastError(comm_));
}

std::string DeviceCommunicator::dump(setoFormat_t format) const {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr, "seto: this group was shut down or aborted");
  return Communicator::dump_of(comm_, format);
}

void DeviceCommunicator::abort() {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) (void)setoCommAbort(std::exchange(comm_, nullptr));
  aborted_.notify_all();
}

void DeviceCommunicator::look_for_interrupts() {
  try {
    torch_backend::look_for_interrupts();
  } catch (...) {
    interrupted_.store(true, std::memory_order_relaxed);
    throw;
  }
}

bool DeviceCommunicator::has_ended() const {
  const std::lock_guard lock(mutex_);
  return comm_ == nullptr || !last_ || last_->query();
}

// Waits without the lock, so that other threads can abort or query meanwhile.
void DeviceCommunicator::shut_down() {
  auto look = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLookMs);
  while (!has_ended()) {
    if (interrupted_.load(std::memory_order_relaxed) || failure() != nullptr) return abort();
    if (std::chrono::steady_clock::now() >= look) {
      look_for_interrupts();
      look = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLookMs);
    }
    std::unique_lock lock(mutex_);
    aborted_.wait_for(lock, kPause, [&] { return comm_ == nullptr; });
  }
  setoComm_t comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::swap(comm, comm_);
  }
  if (comm != nullptr) (void)setoCommDestroy(comm);
}

}  // namespace seto::torch_backend
