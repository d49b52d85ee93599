#include "transports/local/shared_segments.h"

namespace seto {

SharedSegments& SharedSegments::of_process() {
  static SharedSegments* all = new SharedSegments();  // never destroyed: contexts may end after main
  return *all;
}

void SharedSegments::add(std::uint64_t context, const std::shared_ptr<SharedSegment>& segment) {
  const std::lock_guard lock(mutex_);
  by_context_[context] = segment;
}

void SharedSegments::remove(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  by_context_.erase(context);
}

std::shared_ptr<SharedSegment> SharedSegments::find(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  const auto found = by_context_.find(context);
  return found == by_context_.end() ? nullptr : found->second.lock();
}

}  // namespace seto
