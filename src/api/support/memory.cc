#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "src/api/support/handles.h"
#include "src/api/support/settings.h"
#include "src/base/log.h"
#include "src/core/connect/transport_list.h"
#include "src/core/device_memory/memory/device_allocations.h"
#include "transports/named_memory.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;

// The names of allocations of setoMemAlloc on the host, and the sizes of those that peers cannot read where they lie,
// because munmap needs the size. Global state of the process; never destroyed, so that late calls find it.
struct Mappings {
  std::mutex mutex;
  std::map<void*, std::size_t> sizes;
  std::map<void*, NamedMemory::Name> names;
};

Mappings& mappings() {
  static Mappings* const all = new Mappings;
  return *all;
}

// The GPU whose memory the calling thread gets. Null: host memory. Only SETO_MEMORY=device chooses a GPU: with "auto", a program
// that has a CUDA context for other purposes would get memory that it cannot write.
Result<std::shared_ptr<GpuContext>> gpu_of_thread() {
  Settings settings;
  SETO_ASSIGN(settings.config, load_config(environ));
  if (settings.config.memory != Memory::device) return std::shared_ptr<GpuContext>();
  SETO_TRY(settle_memory(settings));
  return std::move(settings.gpu);
}

// An allocation of at least one huge page is aligned to huge pages; otherwise the kernel can use huge pages only in its middle.
Result<void*> allocate_on_host(std::size_t size) {
  if (Result<void*> lendable = allocate_lendable(size); lendable.ok())
    return lendable;
  else
    SETO_LOG(debug, "setoMemAlloc: %zu bytes that peers cannot read where they lie: %s", size,
             std::string(lendable.status().text()).c_str());
  const std::size_t alignment = size >= kHugePage ? kHugePage : kPage;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  const std::size_t spare = alignment == kHugePage ? kHugePage : 0;
  void* const mapped = mmap(nullptr, whole + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return system_failure(Code::unavailable, "out of memory: cannot allocate %zu bytes", size);
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(begin) % alignment) % alignment;
  if (before > 0) munmap(begin, before);
  if (spare > before) munmap(begin + before + whole, spare - before);
  std::byte* const aligned = begin + before;
  if (alignment == kHugePage) (void)madvise(aligned, whole, MADV_HUGEPAGE);
  const std::lock_guard lock(mappings().mutex);
  mappings().sizes[aligned] = whole;
  return static_cast<void*>(aligned);
}

void name(void* memory, std::size_t size) {
  const NamedMemory::Name name = NamedMemory::of_process().add(static_cast<std::byte*>(memory), size);
  const std::lock_guard lock(mappings().mutex);
  mappings().names[memory] = name;
}

// Before the memory is freed.
void take_name_back(void* memory) {
  NamedMemory::Name name = 0;
  {
    const std::lock_guard lock(mappings().mutex);
    const auto found = mappings().names.find(memory);
    if (found == mappings().names.end()) return;
    name = found->second;
    mappings().names.erase(found);
  }
  NamedMemory::of_process().remove(name);
}

Result<void*> allocate(std::size_t size) {
  if (size > std::size_t{1} << 62) return failure(Code::invalid_argument, "size: %zu bytes exceed the address space", size);
  SETO_ASSIGN(std::shared_ptr<GpuContext> gpu, gpu_of_thread());
  if (gpu == nullptr) {
    Result<void*> memory = allocate_on_host(size);
    if (memory.ok()) name(memory.value(), size);
    return memory;
  }
  SETO_ASSIGN(const cuda::DevicePointer begin, DeviceAllocations::of_process().allocate(std::move(gpu), size));
  return reinterpret_cast<void*>(begin);
}

Status release(void* memory) {
  const auto pointer = reinterpret_cast<cuda::DevicePointer>(memory);
  if (DeviceAllocations::of_process().begins_at(pointer)) return DeviceAllocations::of_process().release(pointer);
  take_name_back(memory);
  if (const std::optional<Status> freed = free_lendable(memory)) return *freed;
  std::size_t size = 0;
  {
    const std::lock_guard lock(mappings().mutex);
    const auto found = mappings().sizes.find(memory);
    if (found == mappings().sizes.end())
      return failure(Code::invalid_argument, "ptr: %p is not from setoMemAlloc, or was freed", memory);
    size = found->second;
    mappings().sizes.erase(found);
  }
  if (munmap(memory, size) != 0) return system_failure(Code::internal, "munmap rejected %zu bytes at %p", size, memory);
  return {};
}

}  // namespace

extern "C" {

setoResult_t setoMemAlloc(void** ptr, size_t size) {
  return enter([&]() -> Status {
    if (ptr == nullptr) return null_argument("ptr");
    *ptr = nullptr;
    if (size == 0) return {};
    SETO_ASSIGN(*ptr, allocate(size));
    return {};
  });
}

setoResult_t setoMemFree(void* ptr) {
  return enter([&]() -> Status { return ptr == nullptr ? Status() : release(ptr); });
}

// The memory gets a name: an RDMA device reads long messages in it where they lie, and is told of the memory at the first of
// them. For peers of the host registration has no effect: memory that exists cannot be moved into a file that they map. Memory of
// setoMemAlloc has a name from the beginning.
setoResult_t setoCommRegister(const setoComm_t comm, void* buff, size_t size, void** handle) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    if (handle == nullptr) return null_argument("handle");
    if (buff == nullptr && size > 0) return null_argument("buff");
    *handle = comm->registered.add(buff, size);
    return {};
  });
}

setoResult_t setoCommDeregister(const setoComm_t comm, void* handle) {
  return enter([&]() -> Status {
    SETO_TRY(check_handle(comm));
    return comm->registered.remove(handle);
  });
}

}  // extern "C"
