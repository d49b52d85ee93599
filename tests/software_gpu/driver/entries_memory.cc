// Memory that is allocated, mapped or registered.
#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"
#include "tests/software_gpu/driver/multicast_object.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;
using cuda::MemoryHandle;
using Kind = Range::Kind;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

void mem_get_info(StandIn& s, std::size_t* free, std::size_t* total) {
  const std::uint64_t used = s.memory().used(s.current().gpu);
  give(free, s.settings().memory - used);
  give(total, s.settings().memory);
}

void mem_alloc(StandIn& s, DevicePointer* pointer, std::size_t bytes) {
  need(pointer);
  const std::uint32_t gpu = s.current().gpu;
  *pointer = s.memory().allocate(gpu, bytes, s.peers_into(gpu));
}

void mem_free(StandIn& s, DevicePointer pointer) {
  if (pointer == 0) return;
  s.wait_for_all("cuMemFree", &s.current());
  s.wait_for_kernels("cuMemFree", nullptr);  // of peers, which may read the memory
  s.memory().release(pointer, Kind::device, DriverCode::invalid_value);
}

void mem_get_address_range(StandIn& s, DevicePointer* base, std::size_t* bytes, DevicePointer pointer) {
  const Range* const range = s.memory().find(pointer);
  if (range == nullptr || range->is_host()) throw DriverError(DriverCode::not_found);
  give(base, range->address);
  give(bytes, range->bytes);
}

void mem_host_alloc(StandIn& s, void** pointer, std::size_t bytes, unsigned) {
  need(pointer);
  (void)s.current();
  *pointer = reinterpret_cast<void*>(s.memory().allocate_host(bytes));
}

void mem_free_host(StandIn& s, void* pointer) {
  s.wait_for_all("cuMemFreeHost", nullptr);
  s.memory().release(address_of(pointer), Kind::host, DriverCode::invalid_value);
}

void mem_host_register(StandIn& s, void* pointer, std::size_t bytes, unsigned) {
  need(pointer);
  (void)s.current();
  s.memory().register_host(address_of(pointer), bytes);
}

void mem_host_unregister(StandIn& s, void* pointer) {
  s.wait_for_all("cuMemHostUnregister", nullptr);
  s.memory().release(address_of(pointer), Kind::registered, DriverCode::host_memory_not_registered);
}

void mem_host_get_device_pointer(StandIn& s, DevicePointer* device, void* pointer, unsigned) {
  const Range* const range = s.memory().find(address_of(pointer));
  if (range == nullptr || !range->is_host()) throw DriverError(DriverCode::invalid_value, "the memory is not pinned");
  give(device, address_of(pointer));
}

const std::shared_ptr<PhysicalMemory>& memory_of(StandIn& s, MemoryHandle handle) {
  const auto found = s.handles.find(handle);
  if (found == s.handles.end()) throw DriverError(DriverCode::invalid_value, "there is no such memory handle");
  return found->second.first;
}

MemoryHandle add_handle(StandIn& s, std::shared_ptr<PhysicalMemory> memory) {
  s.handles[s.next_handle] = {std::move(memory), 1};
  return s.next_handle++;
}

std::uint32_t gpu_of(StandIn& s, const cuda::MemoryLocation& location) {
  if (location.type != cuda::LocationType::device)
    throw DriverError(DriverCode::not_supported, "the stand-in has memory of GPUs only");
  return s.gpu_of(location.id);
}

void mem_address_reserve(StandIn& s, DevicePointer* pointer, std::size_t bytes, std::size_t alignment, DevicePointer,
                         unsigned long long) {
  need(pointer);
  *pointer = s.memory().reserve(bytes, alignment);
}

void mem_address_free(StandIn& s, DevicePointer pointer, std::size_t bytes) { s.memory().free_reserved(pointer, bytes); }

void mem_create(StandIn& s, MemoryHandle* handle, std::size_t bytes, const cuda::AllocationProperties* properties,
                unsigned long long) {
  need(handle);
  need(properties);
  if (bytes == 0 || bytes % MemoryTable::kGranularity != 0 || properties->type != cuda::AllocationType::pinned)
    throw DriverError(DriverCode::invalid_value, "the size must be a multiple of 2 MiB, and the type pinned");
  const bool exportable = properties->handle_types == cuda::HandleType::posix_file_descriptor;
  std::shared_ptr<PhysicalMemory> memory = s.memory().create(gpu_of(s, properties->location), bytes, exportable);
  memory->for_devices = properties->flags.gpu_direct_rdma != 0;
  *handle = add_handle(s, std::move(memory));
}

void mem_release(StandIn& s, MemoryHandle handle) {
  (void)memory_of(s, handle);
  if (--s.handles[handle].second == 0) s.handles.erase(handle);
}

void mem_map(StandIn& s, DevicePointer pointer, std::size_t bytes, std::size_t offset, MemoryHandle handle, unsigned long long) {
  s.wait_before_mapping("cuMemMap");
  if (const auto object = memory_of(s, handle)->multicast; object != nullptr) {
    s.wait_for_team("cuMemMap", *object);
    object->map_bound();
  }
  s.memory().map(pointer, bytes, offset, memory_of(s, handle));
}

void mem_unmap(StandIn& s, DevicePointer pointer, std::size_t bytes) {
  s.wait_for_all("cuMemUnmap", nullptr);
  s.memory().unmap(pointer, bytes);
}

void mem_set_access(StandIn& s, DevicePointer pointer, std::size_t bytes, const cuda::MemoryAccess* access, std::size_t count) {
  s.wait_before_mapping("cuMemSetAccess");
  for (std::size_t i = 0; i < count; ++i)
    s.memory().set_access(pointer, bytes, gpu_of(s, access[i].location), access[i].flags != cuda::AccessFlags::none);
}

void mem_get_granularity(StandIn& s, std::size_t* bytes, const cuda::AllocationProperties* properties, cuda::Granularity) {
  need(properties);
  (void)gpu_of(s, properties->location);
  give(bytes, MemoryTable::kGranularity);
}

void mem_retain_handle(StandIn& s, MemoryHandle* handle, void* pointer) {
  need(handle);
  const Range* const range = s.memory().find(address_of(pointer));
  if (range == nullptr || range->kind != Kind::mapped) throw DriverError(DriverCode::invalid_value, "nothing is mapped there");
  for (auto& [number, each] : s.handles) {
    if (each.first != range->memory) continue;
    ++each.second;
    *handle = number;
    return;
  }
  *handle = add_handle(s, range->memory);
}

}  // namespace

void add_memory_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<mem_get_info>(d.mem_get_info);
  table.add<mem_alloc>(d.mem_alloc, kUnsafeInCapture);
  table.add<mem_free>(d.mem_free, kUnsafeInCapture);
  table.add<mem_get_address_range>(d.mem_get_address_range);
  table.add<mem_host_alloc>(d.mem_host_alloc, kUnsafeInCapture);
  table.add<mem_free_host>(d.mem_free_host, kUnsafeInCapture);
  table.add<mem_host_register>(d.mem_host_register, kUnsafeInCapture);
  table.add<mem_host_unregister>(d.mem_host_unregister, kUnsafeInCapture);
  table.add<mem_host_get_device_pointer>(d.mem_host_get_device_pointer);
  table.add<mem_address_reserve>(d.mem_address_reserve);
  table.add<mem_address_free>(d.mem_address_free);
  table.add<mem_create>(d.mem_create);
  table.add<mem_release>(d.mem_release);
  table.add<mem_map>(d.mem_map);
  table.add<mem_unmap>(d.mem_unmap, kUnsafeInCapture);
  table.add<mem_set_access>(d.mem_set_access);
  table.add<mem_get_granularity>(d.mem_get_granularity);
  table.add<mem_retain_handle>(d.mem_retain_handle);
}

}  // namespace seto::software_gpu::driver
