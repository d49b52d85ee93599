#include "src/torch/device/device_communicators.h"

#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

namespace seto::torch_backend {

std::shared_ptr<DeviceCommunicator> DeviceCommunicators::of(c10::Device device, std::chrono::milliseconds timeout) {
  if (auto found = find(device); found != nullptr) return found;
  const std::lock_guard making(making_);
  if (auto found = find(device); found != nullptr) return found;
  // The ranks meet in a part of the store of their own. Their devices may have different numbers.
  Communicator::CommunicatorRequest request = request_;
  request.store = c10::make_intrusive<c10d::PrefixStore>("seto/device/" + std::to_string(all().size()), request.store);
  request.timeout = timeout;
  auto made = DeviceCommunicator::make(std::move(request), device);
  const std::lock_guard lock(mutex_);
  return made_[device.index()] = std::move(made);
}

std::shared_ptr<DeviceCommunicator> DeviceCommunicators::find(c10::Device device) const {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(device.index());
  return found == made_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<DeviceCommunicator>> DeviceCommunicators::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DeviceCommunicator>> all;
  for (const auto& [index, communicator] : made_) all.push_back(communicator);
  return all;
}

}  // namespace seto::torch_backend
