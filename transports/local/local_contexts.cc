#include "transports/local/local_contexts.h"

namespace seto {

LocalContexts& LocalContexts::of_process() {
  static LocalContexts* all = new LocalContexts();  // never destroyed: contexts may end after main
  return *all;
}

void LocalContexts::add(std::uint64_t context, const std::shared_ptr<void>& shared) {
  const std::lock_guard lock(mutex_);
  by_number_[context] = shared;
}

void LocalContexts::remove(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  by_number_.erase(context);
}

std::shared_ptr<void> LocalContexts::find(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(context);
  return found == by_number_.end() ? nullptr : found->second.lock();
}

}  // namespace seto
