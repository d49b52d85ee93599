#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/torch/device/device_communicator.h"

namespace seto::torch_backend {

// The communicators of one group on the devices of this rank. Any thread.
class DeviceCommunicators final {
 public:
  // `request`: that of the communicator of the host.
  explicit DeviceCommunicators(Communicator::CommunicatorRequest request) : request_(std::move(request)) {}

  // Makes the communicator at the first call for a device. Then it blocks until all ranks have called, or until the timeout.
  std::shared_ptr<DeviceCommunicator> of(c10::Device device, std::chrono::milliseconds timeout);
  // Null if it was not made.
  [[nodiscard]] std::shared_ptr<DeviceCommunicator> find(c10::Device device) const;
  [[nodiscard]] std::vector<std::shared_ptr<DeviceCommunicator>> all() const;

 private:
  const Communicator::CommunicatorRequest request_;
  std::mutex making_;  // held while a communicator is made
  mutable std::mutex mutex_;
  std::map<c10::DeviceIndex, std::shared_ptr<DeviceCommunicator>> made_;
};

}  // namespace seto::torch_backend
