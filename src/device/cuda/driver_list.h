#pragma once

#include "src/device/cuda/driver_functions.h"

namespace seto::cuda {

template <class Group, class Visit, class... Calls>
constexpr void visit_group(const Visit& visit, Calls&... calls) {
  static_assert(sizeof(Group) == (sizeof(Calls) + ...), "a call of the group is missing in this list, or is in it twice");
  (visit(calls), ...);
}

// Visits every function that each driver has.
template <class Visit>
constexpr void for_each_call(DriverFunctions& d, const Visit& visit) {
  visit_group<DeviceFunctions>(visit, d.init, d.driver_get_version, d.device_get_count, d.device_get, d.device_get_name,
                               d.device_get_uuid, d.device_total_mem, d.device_get_attribute, d.device_get_pci_bus_id,
                               d.device_can_access_peer, d.device_get_p2p_attribute, d.device_primary_ctx_retain,
                               d.device_primary_ctx_release, d.device_primary_ctx_get_state, d.ctx_set_current, d.ctx_get_current,
                               d.ctx_get_device, d.ctx_synchronize, d.ctx_get_stream_priority_range, d.ctx_enable_peer_access);
  visit_group<MemoryFunctions>(
      visit, d.mem_address_reserve, d.mem_address_free, d.mem_create, d.mem_release, d.mem_map, d.mem_unmap, d.mem_set_access,
      d.mem_export, d.mem_import, d.mem_get_granularity, d.mem_retain_handle, d.mem_get_info, d.mem_alloc, d.mem_free,
      d.mem_get_address_range, d.mem_host_alloc, d.mem_free_host, d.mem_host_register, d.mem_host_unregister,
      d.mem_host_get_device_pointer, d.pointer_get_attribute, d.pointer_get_attributes, d.ipc_get_mem_handle,
      d.ipc_open_mem_handle, d.ipc_close_mem_handle, d.mem_get_range_handle, d.flush_direct_writes);
  visit_group<StreamFunctions>(visit, d.memcpy_async, d.memcpy_dtod_async, d.memcpy_htod_async, d.memcpy_dtoh_async,
                               d.memset_d8_async, d.memset_d32_async, d.stream_create_with_priority, d.stream_destroy,
                               d.stream_query, d.stream_synchronize, d.stream_get_priority, d.stream_get_ctx,
                               d.stream_is_capturing, d.stream_get_capture_info, d.stream_begin_capture, d.stream_end_capture,
                               d.thread_exchange_capture_mode, d.launch_host_func, d.stream_wait_value32, d.stream_wait_value64,
                               d.stream_write_value32, d.stream_write_value64, d.event_create, d.event_record, d.event_query,
                               d.event_synchronize, d.stream_wait_event, d.event_destroy);
  visit_group<KernelFunctions>(visit, d.module_load_data, d.module_unload, d.module_get_function, d.module_get_global,
                               d.func_get_attribute, d.func_set_attribute, d.occupancy_max_active_blocks, d.launch_kernel,
                               d.launch_kernel_ex, d.launch_cooperative_kernel, d.graph_instantiate, d.graph_launch,
                               d.graph_destroy, d.graph_exec_destroy);
}

// Visits the functions that a driver may lack.
template <class Visit>
constexpr void for_each_optional_call(DriverFunctions& d, const Visit& visit) {
  visit_group<MulticastFunctions>(visit, d.multicast_create, d.multicast_add_device, d.multicast_bind_mem, d.multicast_unbind,
                                  d.multicast_get_granularity);
}

}  // namespace seto::cuda
