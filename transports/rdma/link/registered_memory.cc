#include "transports/rdma/link/registered_memory.h"

#include <sys/mman.h>

namespace seto::rdma {

Result<std::unique_ptr<RegisteredMemory>> RegisteredMemory::create(VerbsDevice& device, std::size_t size) {
  void* const pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return system_failure(Code::unavailable, "%zu bytes of memory for RDMA", size);
  // A child that shared these pages would make the kernel copy them on the next write of this process, away from the device.
  (void)madvise(pages, size, MADV_DONTFORK);
  std::unique_ptr<RegisteredMemory> memory(new RegisteredMemory(static_cast<std::byte*>(pages), size));
  SETO_ASSIGN(memory->region_, device.register_unordered(memory->data_, size));
  return memory;
}

RegisteredMemory::~RegisteredMemory() {
  region_.reset();
  munmap(data_, size_);
}

}  // namespace seto::rdma
