#pragma once

#include "src/device/cuda/driver_call.h"
#include "src/device/cuda/driver_memory.h"
#include "src/device/cuda/driver_types.h"

namespace seto::cuda {

// All functions of the driver that the library calls, in groups. Each has CUDA's name without `cu`.

struct DeviceFunctions {
  Call<unsigned> init{"cuInit", 2000};
  Call<int*> driver_get_version{"cuDriverGetVersion", 2020};
  Call<int*> device_get_count{"cuDeviceGetCount", 2000};
  Call<DeviceNumber*, int> device_get{"cuDeviceGet", 2000};
  Call<char*, int, DeviceNumber> device_get_name{"cuDeviceGetName", 2000};
  Call<DeviceUuid*, DeviceNumber> device_get_uuid{"cuDeviceGetUuid", 11040};
  Call<std::size_t*, DeviceNumber> device_total_mem{"cuDeviceTotalMem", 3020};
  Call<int*, DeviceAttribute, DeviceNumber> device_get_attribute{"cuDeviceGetAttribute", 2000};
  Call<char*, int, DeviceNumber> device_get_pci_bus_id{"cuDeviceGetPCIBusId", 4010};
  Call<int*, DeviceNumber, DeviceNumber> device_can_access_peer{"cuDeviceCanAccessPeer", 4000};
  Call<int*, PeerAttribute, DeviceNumber, DeviceNumber> device_get_p2p_attribute{"cuDeviceGetP2PAttribute", 8000};
  Call<Context*, DeviceNumber> device_primary_ctx_retain{"cuDevicePrimaryCtxRetain", 7000};
  Call<DeviceNumber> device_primary_ctx_release{"cuDevicePrimaryCtxRelease", 11000};
  Call<DeviceNumber, unsigned*, int*> device_primary_ctx_get_state{"cuDevicePrimaryCtxGetState", 7000};
  Call<Context> ctx_set_current{"cuCtxSetCurrent", 4000};
  Call<Context*> ctx_get_current{"cuCtxGetCurrent", 4000};
  Call<DeviceNumber*> ctx_get_device{"cuCtxGetDevice", 2000};
  Call<> ctx_synchronize{"cuCtxSynchronize", 2000};
  Call<int*, int*> ctx_get_stream_priority_range{"cuCtxGetStreamPriorityRange", 5050};
  Call<Context, unsigned> ctx_enable_peer_access{"cuCtxEnablePeerAccess", 4000};
};

struct MemoryFunctions {
  Call<DevicePointer*, std::size_t, std::size_t, DevicePointer, unsigned long long> mem_address_reserve{"cuMemAddressReserve",
                                                                                                        10020};
  Call<DevicePointer, std::size_t> mem_address_free{"cuMemAddressFree", 10020};
  Call<MemoryHandle*, std::size_t, const AllocationProperties*, unsigned long long> mem_create{"cuMemCreate", 10020};
  Call<MemoryHandle> mem_release{"cuMemRelease", 10020};
  Call<DevicePointer, std::size_t, std::size_t, MemoryHandle, unsigned long long> mem_map{"cuMemMap", 10020};
  Call<DevicePointer, std::size_t> mem_unmap{"cuMemUnmap", 10020};
  Call<DevicePointer, std::size_t, const MemoryAccess*, std::size_t> mem_set_access{"cuMemSetAccess", 10020};
  Call<void*, MemoryHandle, HandleType, unsigned long long> mem_export{"cuMemExportToShareableHandle", 10020};
  Call<MemoryHandle*, void*, HandleType> mem_import{"cuMemImportFromShareableHandle", 10020};
  Call<std::size_t*, const AllocationProperties*, Granularity> mem_get_granularity{"cuMemGetAllocationGranularity", 10020};
  Call<MemoryHandle*, void*> mem_retain_handle{"cuMemRetainAllocationHandle", 11000};
  Call<std::size_t*, std::size_t*> mem_get_info{"cuMemGetInfo", 3020};
  Call<DevicePointer*, std::size_t> mem_alloc{"cuMemAlloc", 3020};
  Call<DevicePointer> mem_free{"cuMemFree", 3020};
  Call<DevicePointer*, std::size_t*, DevicePointer> mem_get_address_range{"cuMemGetAddressRange", 3020};
  Call<void**, std::size_t, unsigned> mem_host_alloc{"cuMemHostAlloc", 2020};
  Call<void*> mem_free_host{"cuMemFreeHost", 2000};
  Call<void*, std::size_t, unsigned> mem_host_register{"cuMemHostRegister", 6050};
  Call<void*> mem_host_unregister{"cuMemHostUnregister", 4000};
  Call<DevicePointer*, void*, unsigned> mem_host_get_device_pointer{"cuMemHostGetDevicePointer", 3020};
  Call<void*, PointerAttribute, DevicePointer> pointer_get_attribute{"cuPointerGetAttribute", 4000};
  Call<unsigned, PointerAttribute*, void**, DevicePointer> pointer_get_attributes{"cuPointerGetAttributes", 7000};
  Call<IpcMemoryHandle*, DevicePointer> ipc_get_mem_handle{"cuIpcGetMemHandle", 4010};
  Call<DevicePointer*, IpcMemoryHandle, unsigned> ipc_open_mem_handle{"cuIpcOpenMemHandle", 11000};
  Call<DevicePointer> ipc_close_mem_handle{"cuIpcCloseMemHandle", 4010};
  Call<void*, DevicePointer, std::size_t, RangeHandleType, unsigned long long> mem_get_range_handle{
      "cuMemGetHandleForAddressRange", 11070};
  Call<DirectFlushTarget, DirectFlushScope> flush_direct_writes{"cuFlushGPUDirectRDMAWrites", 11030};
};

struct StreamFunctions {
  Call<DevicePointer, DevicePointer, std::size_t, Stream> memcpy_async{"cuMemcpyAsync", 4000};
  Call<DevicePointer, DevicePointer, std::size_t, Stream> memcpy_dtod_async{"cuMemcpyDtoDAsync", 3020};
  Call<DevicePointer, const void*, std::size_t, Stream> memcpy_htod_async{"cuMemcpyHtoDAsync", 3020};
  Call<void*, DevicePointer, std::size_t, Stream> memcpy_dtoh_async{"cuMemcpyDtoHAsync", 3020};
  Call<DevicePointer, unsigned char, std::size_t, Stream> memset_d8_async{"cuMemsetD8Async", 3020};
  Call<DevicePointer, unsigned, std::size_t, Stream> memset_d32_async{"cuMemsetD32Async", 3020};
  Call<Stream*, unsigned, int> stream_create_with_priority{"cuStreamCreateWithPriority", 5050};
  Call<Stream> stream_destroy{"cuStreamDestroy", 4000};
  Call<Stream> stream_query{"cuStreamQuery", 2000};
  Call<Stream> stream_synchronize{"cuStreamSynchronize", 2000};
  Call<Stream, int*> stream_get_priority{"cuStreamGetPriority", 5050};
  Call<Stream, Context*> stream_get_ctx{"cuStreamGetCtx", 9020};
  Call<Stream, CaptureStatus*> stream_is_capturing{"cuStreamIsCapturing", 10000};
  Call<Stream, CaptureStatus*, std::uint64_t*, Graph*, const GraphNode**, const CUgraphEdgeData_st**, std::size_t*>
      stream_get_capture_info{"cuStreamGetCaptureInfo", 12030};
  Call<Stream, CaptureMode> stream_begin_capture{"cuStreamBeginCapture", 10010};
  Call<Stream, Graph*> stream_end_capture{"cuStreamEndCapture", 10000};
  Call<CaptureMode*> thread_exchange_capture_mode{"cuThreadExchangeStreamCaptureMode", 10010};
  Call<Stream, HostFunction, void*> launch_host_func{"cuLaunchHostFunc", 10000};
  Call<Stream, DevicePointer, std::uint32_t, unsigned> stream_wait_value32{"cuStreamWaitValue32", 11070};
  Call<Stream, DevicePointer, std::uint64_t, unsigned> stream_wait_value64{"cuStreamWaitValue64", 11070};
  Call<Stream, DevicePointer, std::uint32_t, unsigned> stream_write_value32{"cuStreamWriteValue32", 11070};
  Call<Stream, DevicePointer, std::uint64_t, unsigned> stream_write_value64{"cuStreamWriteValue64", 11070};
  Call<Event*, unsigned> event_create{"cuEventCreate", 2000};
  Call<Event, Stream> event_record{"cuEventRecord", 2000};
  Call<Event> event_query{"cuEventQuery", 2000};
  Call<Event> event_synchronize{"cuEventSynchronize", 2000};
  Call<Stream, Event, unsigned> stream_wait_event{"cuStreamWaitEvent", 3020};
  Call<Event> event_destroy{"cuEventDestroy", 4000};
};

struct KernelFunctions {
  Call<Module*, const void*> module_load_data{"cuModuleLoadData", 2000};
  Call<Module> module_unload{"cuModuleUnload", 2000};
  Call<Kernel*, Module, const char*> module_get_function{"cuModuleGetFunction", 2000};
  Call<DevicePointer*, std::size_t*, Module, const char*> module_get_global{"cuModuleGetGlobal", 3020};
  Call<int*, KernelAttribute, Kernel> func_get_attribute{"cuFuncGetAttribute", 2020};
  Call<Kernel, KernelAttribute, int> func_set_attribute{"cuFuncSetAttribute", 9000};
  Call<int*, Kernel, int, std::size_t> occupancy_max_active_blocks{"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050};
  Call<Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**> launch_kernel{
      "cuLaunchKernel", 4000};
  Call<const LaunchConfiguration*, Kernel, void**, void**> launch_kernel_ex{"cuLaunchKernelEx", 11060};
  Call<Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**> launch_cooperative_kernel{
      "cuLaunchCooperativeKernel", 9000};
  Call<GraphExec*, Graph, unsigned long long> graph_instantiate{"cuGraphInstantiateWithFlags", 11040};
  Call<GraphExec, Stream> graph_launch{"cuGraphLaunch", 10000};
  Call<Graph> graph_destroy{"cuGraphDestroy", 10000};
  Call<GraphExec> graph_exec_destroy{"cuGraphExecDestroy", 10000};
};

// One address for memory of several GPUs, on NVLink switches. A driver may lack these functions: is_found() says so.
struct MulticastFunctions {
  Call<MemoryHandle*, const MulticastProperties*> multicast_create{"cuMulticastCreate", 12010};
  Call<MemoryHandle, DeviceNumber> multicast_add_device{"cuMulticastAddDevice", 12010};
  Call<MemoryHandle, std::size_t, MemoryHandle, std::size_t, std::size_t, unsigned long long> multicast_bind_mem{
      "cuMulticastBindMem", 12010};
  Call<MemoryHandle, DeviceNumber, std::size_t, std::size_t> multicast_unbind{"cuMulticastUnbind", 12010};
  Call<std::size_t*, const MulticastProperties*, Granularity> multicast_get_granularity{"cuMulticastGetGranularity", 12010};
};

struct DriverFunctions : DeviceFunctions, MemoryFunctions, StreamFunctions, KernelFunctions, MulticastFunctions {};

}  // namespace seto::cuda
