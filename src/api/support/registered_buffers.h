#pragma once

#include <cstddef>
#include <mutex>
#include <set>

#include "src/base/status.h"
#include "transports/named_memory.h"

namespace seto::api {

// The memory that setoCommRegister has named for one communicator. A name ends with the communicator at the latest: without that,
// memory that is freed later would keep it. Any thread.
class RegisteredBuffers final {
 public:
  RegisteredBuffers() = default;
  RegisteredBuffers(const RegisteredBuffers&) = delete;
  RegisteredBuffers& operator=(const RegisteredBuffers&) = delete;
  ~RegisteredBuffers() { clear(); }

  // Returns the handle; null for no bytes.
  [[nodiscard]] void* add(void* memory, std::size_t size);
  Status remove(void* handle);
  void clear();

 private:
  std::mutex mutex_;
  std::set<NamedMemory::Name> names_;
};

}  // namespace seto::api
