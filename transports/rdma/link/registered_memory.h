#pragma once

#include <cstddef>
#include <memory>

#include "src/base/result.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// Zeroed pages that one device may read and its peers may write, in any order before the completion. They are not inherited by
// a forked child, so a fork changes nothing for the device.
class RegisteredMemory final {
 public:
  static Result<std::unique_ptr<RegisteredMemory>> create(VerbsDevice& device, std::size_t size);
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const MemoryRegion& region() const { return *region_; }

 private:
  RegisteredMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* const data_;
  const std::size_t size_;
  std::unique_ptr<MemoryRegion> region_;
};

}  // namespace seto::rdma
