#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "src/base/types.h"
#include "transports/shm/context_memory.h"

namespace seto {

// The contexts of this process by number. An entry does not keep the memory alive. Any thread; control path only.
class ContextsOfProcess final {
 public:
  static ContextsOfProcess& instance();

  void add(ContextId context, const std::shared_ptr<const ContextMemory>& memory);
  void remove(ContextId context);
  // Null: no such context exists.
  [[nodiscard]] std::shared_ptr<const ContextMemory> find(ContextId context);

 private:
  std::mutex mutex_;
  std::unordered_map<ContextId, std::weak_ptr<const ContextMemory>> by_number_;
};

}  // namespace seto
