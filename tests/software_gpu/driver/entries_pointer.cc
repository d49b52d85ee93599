// Attributes of addresses.
#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;
using cuda::PointerAttribute;

template <class T, class Value>
void put(void* into, const Value& value) {
  *static_cast<T*>(into) = static_cast<T>(value);
}

void put_attribute(StandIn& s, void* into, PointerAttribute attribute, DevicePointer pointer, const Range& range) {
  const bool exportable = range.memory != nullptr && range.memory->exportable;
  switch (attribute) {
    case PointerAttribute::context:
      // Memory that was mapped belongs to no context.
      return put<void*>(into, range.kind == Range::Kind::mapped ? nullptr : static_cast<void*>(&s.primary(range.gpu)));
    case PointerAttribute::memory_type:
      return put<unsigned>(into, range.is_host() ? cuda::MemoryType::host : cuda::MemoryType::device);
    case PointerAttribute::device_pointer:
      return put<DevicePointer>(into, pointer);
    case PointerAttribute::host_pointer:
      if (!range.is_host()) throw DriverError(DriverCode::invalid_value, "the host has no pointer to this memory");
      *static_cast<void**>(into) = reinterpret_cast<void*>(pointer);
      return;
    case PointerAttribute::buffer_id:
      return put<unsigned long long>(into, range.number);
    case PointerAttribute::is_managed:
      return put<unsigned>(into, 0);
    case PointerAttribute::device:
      return put<int>(into, range.gpu);
    case PointerAttribute::is_legacy_ipc_capable:
      return put<bool>(into, range.kind == Range::Kind::device);
    case PointerAttribute::range_start:
      return put<DevicePointer>(into, range.address);
    case PointerAttribute::range_size:
      return put<std::size_t>(into, range.bytes);
    case PointerAttribute::mapped:
      return put<bool>(into, true);
    case PointerAttribute::allowed_handle_types:
      return put<unsigned long long>(into, exportable ? 1 : 0);
    case PointerAttribute::memory_pool:
      *static_cast<void**>(into) = nullptr;
      return;
  }
  throw DriverError(DriverCode::invalid_value, "the stand-in does not know this attribute");
}

void pointer_get_attribute(StandIn& s, void* into, PointerAttribute attribute, DevicePointer pointer) {
  need(into);
  const Range* const range = s.memory().find(pointer);
  if (range == nullptr) throw DriverError(DriverCode::invalid_value, "the driver does not know this address");
  put_attribute(s, into, attribute, pointer, *range);
}

// Values of an unknown address are those of ordinary memory of the host, and no error.
void put_unknown(void* into, PointerAttribute attribute) {
  switch (attribute) {
    case PointerAttribute::memory_type:
    case PointerAttribute::is_managed:
      return put<unsigned>(into, 0);
    case PointerAttribute::device:
      return put<int>(into, -2);
    case PointerAttribute::is_legacy_ipc_capable:
    case PointerAttribute::mapped:
      return put<bool>(into, false);
    default:
      return put<unsigned long long>(into, 0);
  }
}

void pointer_get_attributes(StandIn& s, unsigned count, PointerAttribute* attributes, void** into, DevicePointer pointer) {
  const Range* const range = s.memory().find(pointer);
  for (unsigned i = 0; i < count; ++i) {
    const bool unknown = range == nullptr || (attributes[i] == PointerAttribute::host_pointer && !range->is_host());
    if (unknown)
      put_unknown(into[i], attributes[i]);
    else
      put_attribute(s, into[i], attributes[i], pointer, *range);
  }
}

}  // namespace

void add_pointer_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<pointer_get_attribute>(d.pointer_get_attribute);
  table.add<pointer_get_attributes>(d.pointer_get_attributes);
}

}  // namespace seto::software_gpu::driver
