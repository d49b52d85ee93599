#include "src/core/device_memory/launch_order.h"

#include <cstdlib>
#include <string_view>

namespace seto {

bool LaunchOrder::launches_block() {
  const char* const text = std::getenv("CUDA_LAUNCH_BLOCKING");
  return text != nullptr && std::string_view(text) != "" && std::string_view(text) != "0";
}

void LaunchOrder::leave(const void* communicator) {
  const std::lock_guard lock(mutex_);
  if (last_ != communicator) return;
  last_ = nullptr;
  begun_ = nullptr;
}

}  // namespace seto
