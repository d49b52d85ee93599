#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "src/torch/work.h"

namespace seto::torch_backend {

class DeviceCommunicator;

// One call, or several as one, on tensors of a device. It runs on the stream of its communicator. wait() makes the current stream
// wait for the end and returns at once; with a timeout, and for a barrier, it blocks. A failure is noticed by the library some
// time after the call was issued: wait() throws if the communicator has failed by then.
class DeviceWork final : public Work {
 public:
  DeviceWork(c10::Device device, int rank, const What& what, std::vector<at::Tensor> results,
             const std::optional<std::vector<at::Tensor>>& inputs);

  [[nodiscard]] c10::Device device() const override { return device_; }
  // Called once, when the calls are in the stream: what is in the stream now is the end of the work. `limit`: the deadline of the
  // calls, which the library counts from the begin of their kernels.
  void launched(std::shared_ptr<DeviceCommunicator> communicator, const c10::Stream& stream, std::chrono::milliseconds limit);

  bool isCompleted() override;
  bool isSuccess() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void abort() override;
  std::vector<at::Tensor> result() override { return results(); }  // valid on streams that wait for the work
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  using Clock = std::chrono::steady_clock;

  // Whether a failure may still become known after the end of the kernels.
  [[nodiscard]] bool may_be_overdue();
  // Throws if the communicator has failed and the work had not ended before.
  void check_failure();
  void complete(std::exception_ptr failure);
  void wait_on_host(std::chrono::milliseconds timeout);

  const c10::Device device_;
  const bool blocks_;                                 // a barrier
  std::shared_ptr<DeviceCommunicator> communicator_;  // null while its batch is open
  std::optional<c10::Stream> stream_;
  std::optional<c10::Event> end_;
  Clock::time_point limit_;                    // before it no call is overdue
  std::optional<Clock::time_point> end_seen_;  // when the end was noticed, after the limit
  bool captured_ = false;                      // into a graph: nothing runs, and the event may not be queried
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace seto::torch_backend
