#pragma once

#include <cstddef>
#include <map>
#include <memory_resource>
#include <mutex>

#include "transports/named_memory.h"

namespace seto::support {

// Memory that has a name from its allocation to its end, as that of setoMemAlloc. A part of it that a device reads after its end
// has no name any more, and is an error of the device.
class NamedMemoryResource final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const memory = std::pmr::get_default_resource()->allocate(bytes, alignment);
    const std::lock_guard lock(mutex_);
    names_[memory] = NamedMemory::of_process().add(static_cast<std::byte*>(memory), bytes);
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    {
      const std::lock_guard lock(mutex_);
      NamedMemory::of_process().remove(names_.at(memory));
      names_.erase(memory);
    }
    std::pmr::get_default_resource()->deallocate(memory, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::mutex mutex_;
  std::map<void*, NamedMemory::Name> names_;
};

}  // namespace seto::support
