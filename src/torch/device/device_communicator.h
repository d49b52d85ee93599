#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/torch/communicator.h"

namespace seto::torch_backend {

class DeviceWork;

// A communicator on the memory of one device, with the stream on which its calls run: one of high priority from torch's pool. Any
// thread.
class DeviceCommunicator final : public std::enable_shared_from_this<DeviceCommunicator> {
 public:
  // Blocks until every rank has joined, or until the timeout.
  static std::shared_ptr<DeviceCommunicator> make(Communicator::CommunicatorRequest request, c10::Device device);
  DeviceCommunicator(std::shared_ptr<SharedContext> context, setoComm_t comm, const c10::Stream& stream);
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;
  ~DeviceCommunicator();

  // Queues the calls, and the copies of their results, behind what is in the current stream now. Several calls form a group.
  void launch(const std::vector<Communicator::Call>& calls, const setoCallConfig_t& config, DeviceWork& work);

  [[nodiscard]] setoResult_t error() const;
  // The failure of the communicator as an exception; null: it has none.
  [[nodiscard]] std::exception_ptr failure() const;
  [[nodiscard]] std::string dump(setoFormat_t format) const;

  void abort();
  // Waits for the calls of this rank. If an earlier wait was interrupted, or the communicator has failed, aborts them instead.
  void shut_down();
  // Called by a waiting thread. Throws if the wait was interrupted.
  void look_for_interrupts();

 private:
  void issue(const std::vector<Communicator::Call>& calls, const Communicator::IssueTarget& target) const;  // locked
  [[nodiscard]] bool has_ended() const;

  const std::shared_ptr<SharedContext> context_;
  const c10::Stream stream_;
  const setoStream_t handle_;
  std::atomic<bool> interrupted_{false};
  mutable std::mutex mutex_;
  std::condition_variable aborted_;
  setoComm_t comm_;                 // null after it was destroyed
  std::optional<c10::Event> last_;  // the end of the last call that was not captured
};

}  // namespace seto::torch_backend
