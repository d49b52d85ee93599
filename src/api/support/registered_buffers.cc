#include "src/api/support/registered_buffers.h"

#include <cstdint>
#include <utility>

namespace seto::api {

// The handle is the name, which is never 0.
void* RegisteredBuffers::add(void* memory, std::size_t size) {
  if (size == 0) return nullptr;
  const NamedMemory::Name name = NamedMemory::of_process().add(static_cast<std::byte*>(memory), size);
  const std::lock_guard lock(mutex_);
  names_.insert(name);
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(name));
}

Status RegisteredBuffers::remove(void* handle) {
  if (handle == nullptr) return {};
  const NamedMemory::Name name = reinterpret_cast<std::uintptr_t>(handle);
  {
    const std::lock_guard lock(mutex_);
    if (names_.erase(name) == 0)
      return failure(Code::invalid_argument, "handle: %p is not from setoCommRegister of this communicator, or was deregistered",
                     handle);
  }
  NamedMemory::of_process().remove(name);
  return {};
}

void RegisteredBuffers::clear() {
  std::set<NamedMemory::Name> names;
  {
    const std::lock_guard lock(mutex_);
    std::swap(names, names_);
  }
  for (const NamedMemory::Name name : names) NamedMemory::of_process().remove(name);
}

}  // namespace seto::api
