// Multicast objects: memory of several GPUs behind one address, which multimem instructions access.
#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"
#include "tests/software_gpu/driver/multicast_object.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::MemoryHandle;

const std::shared_ptr<PhysicalMemory>& memory_of(StandIn& s, MemoryHandle handle, bool is_object) {
  const auto found = s.handles.find(handle);
  if (found == s.handles.end() || (found->second.first->multicast != nullptr) != is_object)
    throw DriverError(DriverCode::invalid_value, is_object ? "the handle is no multicast object" : "the handle is no memory");
  return found->second.first;
}

MulticastObject& object_of(StandIn& s, MemoryHandle handle) { return *memory_of(s, handle, true)->multicast; }

void check_support(const StandIn& s) {
  if (!s.has_multicast()) throw DriverError(DriverCode::not_supported, "the GPUs have no multicast");
}

void check(const cuda::MulticastProperties* properties) {
  need(properties);
  constexpr auto kByFile = static_cast<unsigned long long>(cuda::HandleType::posix_file_descriptor);
  if (properties->devices == 0 || properties->size == 0 || properties->flags != 0 || (properties->handle_types & ~kByFile) != 0)
    throw DriverError(DriverCode::invalid_value, "an object needs GPUs and a size; it has handles by file descriptor or none");
}

void create(StandIn& s, MemoryHandle* handle, const cuda::MulticastProperties* properties) {
  need(handle);
  check(properties);
  check_support(s);
  if (properties->devices > s.settings().gpus || properties->size % MemoryTable::kGranularity != 0)
    throw DriverError(DriverCode::invalid_value, "there are fewer GPUs, or the size is no multiple of 2 MiB");
  const auto object = MulticastObject::create(properties->devices, properties->size, s.memory());
  s.handles[s.next_handle] = {MulticastObject::memory_of(object, properties->handle_types != 0), 1};
  *handle = s.next_handle++;
}

void add_device(StandIn& s, MemoryHandle handle, cuda::DeviceNumber device) {
  check_support(s);
  object_of(s, handle).add(s.gpu_of(device));
}

// It waits for the other GPUs without the lock, so the handle is looked up again.
void bind_mem(StandIn& s, MemoryHandle handle, std::size_t offset, MemoryHandle memory, std::size_t memory_offset,
              std::size_t bytes, unsigned long long flags) {
  if (flags != 0) throw DriverError(DriverCode::invalid_value, "flags must be 0");
  const std::shared_ptr<PhysicalMemory> object = memory_of(s, handle, true);
  s.wait_for_team("cuMulticastBindMem", *object->multicast);
  const std::shared_ptr<PhysicalMemory>& bound = memory_of(s, memory, false);
  if (object->exportable && !bound->exportable)
    throw DriverError(DriverCode::invalid_value, "an object with handles takes only memory with handles");
  object->multicast->bind(offset, bound, memory_offset, bytes);
}

void unbind(StandIn& s, MemoryHandle handle, cuda::DeviceNumber device, std::size_t offset, std::size_t bytes) {
  s.wait_for_kernels("cuMulticastUnbind", nullptr);
  object_of(s, handle).unbind(s.gpu_of(device), offset, bytes);
}

void get_granularity(StandIn& s, std::size_t* bytes, const cuda::MulticastProperties* properties, cuda::Granularity) {
  check(properties);
  check_support(s);
  give(bytes, MemoryTable::kGranularity);
}

}  // namespace

void add_multicast_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<create>(d.multicast_create);
  table.add<add_device>(d.multicast_add_device);
  table.add<bind_mem>(d.multicast_bind_mem);
  table.add<unbind>(d.multicast_unbind, kUnsafeInCapture);
  table.add<get_granularity>(d.multicast_get_granularity);
}

}  // namespace seto::software_gpu::driver
