#include "transports/shm/contexts_of_process.h"

namespace seto {

ContextsOfProcess& ContextsOfProcess::instance() {
  static auto* const all = new ContextsOfProcess();  // never destroyed: contexts may end after main
  return *all;
}

void ContextsOfProcess::add(ContextId context, const std::shared_ptr<const ContextMemory>& memory) {
  const std::lock_guard lock(mutex_);
  by_number_[context] = memory;
}

void ContextsOfProcess::remove(ContextId context) {
  const std::lock_guard lock(mutex_);
  by_number_.erase(context);
}

std::shared_ptr<const ContextMemory> ContextsOfProcess::find(ContextId context) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(context);
  return found == by_number_.end() ? nullptr : found->second.lock();
}

}  // namespace seto
