#include "src/core/device_memory/launch_order.h"

namespace seto {

cuda::Event LaunchOrder::before(const void* communicator) const {
  const std::lock_guard lock(mutex_);
  const auto last = last_.find(std::this_thread::get_id());
  return last == last_.end() || last->second.communicator == communicator ? nullptr : last->second.begun;
}

void LaunchOrder::launched(const void* communicator, cuda::Event begun) {
  const std::lock_guard lock(mutex_);
  last_[std::this_thread::get_id()] = {communicator, begun};
}

void LaunchOrder::leave(const void* communicator) {
  const std::lock_guard lock(mutex_);
  std::erase_if(last_, [&](const auto& each) { return each.second.communicator == communicator; });
}

}  // namespace seto
