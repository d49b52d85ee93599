#include "src/core/device_memory/launch_order.h"

namespace seto {

cuda::Event LaunchOrder::before(const Member& member) const {
  const std::lock_guard lock(mutex_);
  const auto last = last_.find(std::this_thread::get_id());
  if (last == last_.end() || last->second.member == &member || last->second.member->has_failed()) return nullptr;
  return last->second.begun;
}

void LaunchOrder::launched(const Member& member, cuda::Event begun) {
  leave(member);  // the order of another thread
  const std::lock_guard lock(mutex_);
  last_[std::this_thread::get_id()] = {&member, begun};
}

void LaunchOrder::leave(const Member& member) {
  const std::lock_guard lock(mutex_);
  std::erase_if(last_, [&](const auto& each) { return each.second.member == &member; });
}

}  // namespace seto
