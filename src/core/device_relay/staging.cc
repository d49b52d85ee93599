#include "src/core/device_relay/staging.h"

#include <cstring>
#include <string>

namespace seto {

Result<std::unique_ptr<Staging>> Staging::create(const cuda::Driver& driver) {
  std::unique_ptr<Staging> made(new Staging(driver));
  void* memory = nullptr;
  const Status allocated = driver.mem_host_alloc(&memory, kStagingSize, cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap);
  if (!allocated.ok())
    return failure(allocated.code(), "no %zu MiB of pinned memory for messages to ranks that the GPU does not reach: %s",
                   kStagingSize >> 20, std::string(allocated.text()).c_str());
  made->memory_ = static_cast<std::byte*>(memory);
  std::memset(memory, 0, kStagingSize);
  cuda::DevicePointer address = 0;
  SETO_TRY(driver.mem_host_get_device_pointer(&address, memory, 0));
  made->address_ = address;
  return made;
}

Staging::~Staging() {
  if (memory_ != nullptr) static_cast<void>(driver_.mem_free_host.code(memory_));
}

}  // namespace seto
