// Devices, primary contexts and peer access.
#include <cstdio>
#include <cstring>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DeviceAttribute;
using cuda::DeviceNumber;

cuda::Context handle_of(Context& context) { return reinterpret_cast<cuda::Context>(&context); }

void init(StandIn& s, unsigned flags) {
  if (flags != 0) throw DriverError(DriverCode::invalid_value);
  if (s.settings().gpus == 0) throw DriverError(DriverCode::no_device);
  s.initialise();
}

void driver_get_version(StandIn& s, int* version) { give(version, s.settings().version); }
void device_get_count(StandIn& s, int* count) { give(count, s.settings().gpus); }
void device_get(StandIn& s, DeviceNumber* device, int number) { give(device, s.gpu_of(number)); }

bool is_slice(const StandIn& s, DeviceNumber device) { return s.gpu_of(device) < s.settings().multi_instance; }

void device_get_name(StandIn& s, char* name, int size, DeviceNumber device) {
  std::snprintf(name, static_cast<std::size_t>(size), "%s", is_slice(s, device) ? "Software GPU MIG 1g.10gb" : "Software GPU");
}

void device_get_uuid(StandIn& s, cuda::DeviceUuid* uuid, DeviceNumber device) {
  *uuid = {};
  std::memcpy(uuid->bytes, "software gpu", 12);
  uuid->bytes[15] = static_cast<char>(s.gpu_of(device));
}

void device_total_mem(StandIn& s, std::size_t* bytes, DeviceNumber device) {
  (void)s.gpu_of(device);
  give(bytes, s.settings().memory);
}

void device_get_attribute(StandIn& s, int* value, DeviceAttribute attribute, DeviceNumber device) {
  (void)s.gpu_of(device);
  const Settings& settings = s.settings();
  const MultiprocessorLimits& limits = s.machine().settings().limits;
  *value = [&]() -> int {
    switch (attribute) {
      case DeviceAttribute::max_threads_per_block:
        return 1024;
      case DeviceAttribute::max_shared_memory_per_block:
        return 48 << 10;
      case DeviceAttribute::clock_rate:
        return 1'000'000;
      case DeviceAttribute::multiprocessor_count:
        return static_cast<int>(settings.multiprocessors);
      case DeviceAttribute::compute_mode:
        return settings.compute_mode;
      case DeviceAttribute::max_threads_per_multiprocessor:
        return static_cast<int>(limits.threads);
      case DeviceAttribute::compute_capability_major:
        return settings.capability / 10;
      case DeviceAttribute::compute_capability_minor:
        return settings.capability % 10;
      case DeviceAttribute::max_shared_memory_per_multiprocessor:
        return static_cast<int>(limits.shared_bytes);
      case DeviceAttribute::max_shared_memory_per_block_optin:
        return static_cast<int>(limits.shared_bytes) - 1024;
      case DeviceAttribute::dma_buf:
        return settings.dma_buf ? 1 : 0;
      case DeviceAttribute::posix_file_descriptor_handles:
        return settings.memory_files ? 1 : 0;
      case DeviceAttribute::multicast:
        return s.has_multicast() ? 1 : 0;
      case DeviceAttribute::gpu_direct_write_order:
        return settings.write_order;
      case DeviceAttribute::gpu_direct_flush_options:
        return settings.flush_options;
      case DeviceAttribute::gpu_direct_rdma:
      case DeviceAttribute::unified_addressing:
      case DeviceAttribute::cooperative_launch:
      case DeviceAttribute::virtual_memory_management:
      case DeviceAttribute::stream_memory_operations_64_bit:
        return 1;
      default:
        return 0;
    }
  }();
}

void device_get_pci_bus_id(StandIn& s, char* text, int size, DeviceNumber device) {
  const std::uint32_t place = is_slice(s, device) ? 0 : s.gpu_of(device);  // slices have that of their GPU
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", 0x1AU + place);
}

bool reaches(const StandIn& s, std::uint32_t from, std::uint32_t to) {
  return from != to && ((s.settings().peers[from] >> to) & 1) != 0;
}

void device_can_access_peer(StandIn& s, int* can, DeviceNumber device, DeviceNumber peer) {
  give(can, reaches(s, s.gpu_of(device), s.gpu_of(peer)) ? 1 : 0);
}

void device_get_p2p_attribute(StandIn& s, int* value, cuda::PeerAttribute attribute, DeviceNumber source, DeviceNumber target) {
  if (s.gpu_of(source) == s.gpu_of(target)) throw DriverError(DriverCode::invalid_device);
  const bool can = reaches(s, s.gpu_of(source), s.gpu_of(target));
  give(value, can && attribute != cuda::PeerAttribute::performance_rank ? 1 : 0);
}

void device_primary_ctx_retain(StandIn& s, cuda::Context* context, DeviceNumber device) {
  need(context);
  Context& primary = s.primary(s.gpu_of(device));
  if (s.settings().compute_mode == static_cast<int>(cuda::ComputeMode::prohibited))
    throw DriverError(DriverCode::device_unavailable, "the compute mode is prohibited");
  if (primary.references == 0) s.claim(primary);
  ++primary.references;
  *context = handle_of(primary);
}

void device_primary_ctx_release(StandIn& s, DeviceNumber device) {
  Context& primary = s.primary(s.gpu_of(device));
  if (primary.references == 0) throw DriverError(DriverCode::invalid_context);
  if (primary.references == 1) {
    s.wait_for_all("cuDevicePrimaryCtxRelease", &primary);
    s.drop_context(primary);
  }
  --primary.references;
}

void device_primary_ctx_get_state(StandIn& s, DeviceNumber device, unsigned* flags, int* active) {
  give(flags, 0);
  give(active, s.primary(s.gpu_of(device)).references > 0 ? 1 : 0);
}

void ctx_set_current(StandIn& s, cuda::Context context) { s.set_current(context == nullptr ? nullptr : &s.context_of(context)); }

void ctx_get_current(StandIn& s, cuda::Context* context) {
  Context* const current = s.current_or_null();
  *context = current == nullptr ? nullptr : handle_of(*current);
}

void ctx_get_device(StandIn& s, DeviceNumber* device) { give(device, s.current().gpu); }

void ctx_synchronize(StandIn& s) {
  Context& context = s.current();
  s.wait_for_all("cuCtxSynchronize", &context);
  if (context.failed) throw DriverError(*context.failed);
}

void ctx_get_stream_priority_range(StandIn& s, int* least, int* greatest) {
  (void)s.current();
  give(least, 0);
  give(greatest, -5);
}

void ctx_enable_peer_access(StandIn& s, cuda::Context peer, unsigned flags) {
  if (flags != 0) throw DriverError(DriverCode::invalid_value);
  Context& current = s.current();
  const std::uint32_t other = s.context_of(peer).gpu;
  if (current.gpu == other) throw DriverError(DriverCode::invalid_device);
  if (!reaches(s, current.gpu, other)) throw DriverError(DriverCode::peer_access_unsupported);
  const std::uint64_t bit = std::uint64_t{1} << other;
  if ((current.peers & bit) != 0) throw DriverError(DriverCode::peer_access_already_enabled);
  current.peers |= bit;
  s.memory().add_peers(other, std::uint64_t{1} << current.gpu);
}

}  // namespace

void add_device_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<init>(d.init, kAnywhere);
  table.add<driver_get_version>(d.driver_get_version, kAnywhere);
  table.add<device_get_count>(d.device_get_count);
  table.add<device_get>(d.device_get);
  table.add<device_get_name>(d.device_get_name);
  table.add<device_get_uuid>(d.device_get_uuid);
  table.add<device_total_mem>(d.device_total_mem);
  table.add<device_get_attribute>(d.device_get_attribute);
  table.add<device_get_pci_bus_id>(d.device_get_pci_bus_id);
  table.add<device_can_access_peer>(d.device_can_access_peer);
  table.add<device_get_p2p_attribute>(d.device_get_p2p_attribute);
  table.add<device_primary_ctx_retain>(d.device_primary_ctx_retain);
  table.add<device_primary_ctx_release>(d.device_primary_ctx_release, kAnywhere);
  table.add<device_primary_ctx_get_state>(d.device_primary_ctx_get_state);
  table.add<ctx_set_current>(d.ctx_set_current, kAnywhere);
  table.add<ctx_get_current>(d.ctx_get_current, kAnywhere);
  table.add<ctx_get_device>(d.ctx_get_device);
  table.add<ctx_synchronize>(d.ctx_synchronize, kUnsafeInCapture);
  table.add<ctx_get_stream_priority_range>(d.ctx_get_stream_priority_range);
  table.add<ctx_enable_peer_access>(d.ctx_enable_peer_access, kUnsafeInCapture);
}

}  // namespace seto::software_gpu::driver
