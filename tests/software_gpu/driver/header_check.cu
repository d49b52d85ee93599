// nvcc_test.cc has nvcc compile this file as C++: it compares each declaration of the library with CUDA's own header.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

#include "src/device/cuda/driver_functions.h"

namespace seto::cuda {
namespace {

// Whether two types are passed alike: the names of enumerations and structures differ, their sizes do not.
template <class Own, class Theirs>
constexpr bool alike() {
  if constexpr (std::is_same_v<Own, Theirs>) {
    return true;
  } else if constexpr (std::is_pointer_v<Own> && std::is_pointer_v<Theirs>) {
    using OwnTarget = std::remove_pointer_t<Own>;
    using TheirTarget = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_const_v<OwnTarget> != std::is_const_v<TheirTarget>)
      return false;
    else
      return alike<std::remove_const_t<OwnTarget>, std::remove_const_t<TheirTarget>>();
  } else if constexpr (std::is_enum_v<Own> && std::is_enum_v<Theirs>) {
    return sizeof(Own) == sizeof(Theirs);
  } else if constexpr (std::is_integral_v<Own> && std::is_integral_v<Theirs>) {
    return sizeof(Own) == sizeof(Theirs) && std::is_signed_v<Own> == std::is_signed_v<Theirs>;
  } else if constexpr (std::is_class_v<Own> && std::is_class_v<Theirs>) {
    return sizeof(Own) == sizeof(Theirs) && alignof(Own) == alignof(Theirs);
  } else {
    return false;
  }
}

template <class... Own, class Code, class... Theirs>
constexpr bool agrees(const Call<Own...>&, Code (*)(Theirs...)) {
  static_assert(sizeof...(Own) == sizeof...(Theirs), "another number of arguments");
  return sizeof(Code) == sizeof(DriverCode) && (alike<Own, Theirs>() && ...);
}

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) && alignof(LaunchAttribute) == alignof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, number) == offsetof(CUlaunchAttribute, id));
static_assert(offsetof(LaunchAttribute, event) == offsetof(CUlaunchAttribute, value.launchCompletionEvent.event));
static_assert(offsetof(LaunchAttribute, flags) == offsetof(CUlaunchAttribute, value.launchCompletionEvent.flags));
static_assert(static_cast<int>(LaunchAttributeNumber::launch_completion_event) == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
static_assert(offsetof(LaunchConfiguration, grid_x) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(LaunchConfiguration, block_x) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfiguration, shared) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfiguration, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfiguration, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfiguration, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

constexpr DriverFunctions d;
// The third argument is the version under which the library asks for the function.
#define SETO_AGREES(member, function, number)                                                   \
  static_assert(agrees(d.member, static_cast<PFN_##function##_v##number>(nullptr)), #function); \
  static_assert(d.member.version() == number, "the version of " #function)

SETO_AGREES(init, cuInit, 2000);
SETO_AGREES(driver_get_version, cuDriverGetVersion, 2020);
SETO_AGREES(device_get_count, cuDeviceGetCount, 2000);
SETO_AGREES(device_get, cuDeviceGet, 2000);
SETO_AGREES(device_get_name, cuDeviceGetName, 2000);
SETO_AGREES(device_get_uuid, cuDeviceGetUuid, 11040);
SETO_AGREES(device_total_mem, cuDeviceTotalMem, 3020);
SETO_AGREES(device_get_attribute, cuDeviceGetAttribute, 2000);
SETO_AGREES(device_get_pci_bus_id, cuDeviceGetPCIBusId, 4010);
SETO_AGREES(device_can_access_peer, cuDeviceCanAccessPeer, 4000);
SETO_AGREES(device_get_p2p_attribute, cuDeviceGetP2PAttribute, 8000);
SETO_AGREES(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000);
SETO_AGREES(device_primary_ctx_release, cuDevicePrimaryCtxRelease, 11000);
SETO_AGREES(device_primary_ctx_get_state, cuDevicePrimaryCtxGetState, 7000);
SETO_AGREES(ctx_set_current, cuCtxSetCurrent, 4000);
SETO_AGREES(ctx_get_current, cuCtxGetCurrent, 4000);
SETO_AGREES(ctx_get_device, cuCtxGetDevice, 2000);
SETO_AGREES(ctx_synchronize, cuCtxSynchronize, 2000);
SETO_AGREES(ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange, 5050);
SETO_AGREES(ctx_enable_peer_access, cuCtxEnablePeerAccess, 4000);
SETO_AGREES(mem_address_reserve, cuMemAddressReserve, 10020);
SETO_AGREES(mem_address_free, cuMemAddressFree, 10020);
SETO_AGREES(mem_create, cuMemCreate, 10020);
SETO_AGREES(mem_release, cuMemRelease, 10020);
SETO_AGREES(mem_map, cuMemMap, 10020);
SETO_AGREES(mem_unmap, cuMemUnmap, 10020);
SETO_AGREES(mem_set_access, cuMemSetAccess, 10020);
SETO_AGREES(mem_export, cuMemExportToShareableHandle, 10020);
SETO_AGREES(mem_import, cuMemImportFromShareableHandle, 10020);
SETO_AGREES(mem_get_granularity, cuMemGetAllocationGranularity, 10020);
SETO_AGREES(mem_retain_handle, cuMemRetainAllocationHandle, 11000);
SETO_AGREES(mem_get_info, cuMemGetInfo, 3020);
SETO_AGREES(mem_alloc, cuMemAlloc, 3020);
SETO_AGREES(mem_free, cuMemFree, 3020);
SETO_AGREES(mem_get_address_range, cuMemGetAddressRange, 3020);
SETO_AGREES(mem_host_alloc, cuMemHostAlloc, 2020);
SETO_AGREES(mem_free_host, cuMemFreeHost, 2000);
SETO_AGREES(mem_host_register, cuMemHostRegister, 6050);
SETO_AGREES(mem_host_unregister, cuMemHostUnregister, 4000);
SETO_AGREES(mem_host_get_device_pointer, cuMemHostGetDevicePointer, 3020);
SETO_AGREES(pointer_get_attribute, cuPointerGetAttribute, 4000);
SETO_AGREES(pointer_get_attributes, cuPointerGetAttributes, 7000);
SETO_AGREES(ipc_get_mem_handle, cuIpcGetMemHandle, 4010);
SETO_AGREES(ipc_open_mem_handle, cuIpcOpenMemHandle, 11000);
SETO_AGREES(ipc_close_mem_handle, cuIpcCloseMemHandle, 4010);
SETO_AGREES(mem_get_range_handle, cuMemGetHandleForAddressRange, 11070);
SETO_AGREES(flush_direct_writes, cuFlushGPUDirectRDMAWrites, 11030);
SETO_AGREES(memcpy_async, cuMemcpyAsync, 4000);
SETO_AGREES(memcpy_dtod_async, cuMemcpyDtoDAsync, 3020);
SETO_AGREES(memcpy_htod_async, cuMemcpyHtoDAsync, 3020);
SETO_AGREES(memcpy_dtoh_async, cuMemcpyDtoHAsync, 3020);
SETO_AGREES(memset_d8_async, cuMemsetD8Async, 3020);
SETO_AGREES(memset_d32_async, cuMemsetD32Async, 3020);
SETO_AGREES(stream_create_with_priority, cuStreamCreateWithPriority, 5050);
SETO_AGREES(stream_destroy, cuStreamDestroy, 4000);
SETO_AGREES(stream_query, cuStreamQuery, 2000);
SETO_AGREES(stream_synchronize, cuStreamSynchronize, 2000);
SETO_AGREES(stream_get_priority, cuStreamGetPriority, 5050);
SETO_AGREES(stream_get_ctx, cuStreamGetCtx, 9020);
SETO_AGREES(stream_is_capturing, cuStreamIsCapturing, 10000);
SETO_AGREES(stream_get_capture_info, cuStreamGetCaptureInfo, 12030);
SETO_AGREES(stream_begin_capture, cuStreamBeginCapture, 10010);
SETO_AGREES(stream_end_capture, cuStreamEndCapture, 10000);
SETO_AGREES(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, 10010);
SETO_AGREES(launch_host_func, cuLaunchHostFunc, 10000);
SETO_AGREES(stream_wait_value32, cuStreamWaitValue32, 11070);
SETO_AGREES(stream_wait_value64, cuStreamWaitValue64, 11070);
SETO_AGREES(stream_write_value32, cuStreamWriteValue32, 11070);
SETO_AGREES(stream_write_value64, cuStreamWriteValue64, 11070);
SETO_AGREES(event_create, cuEventCreate, 2000);
SETO_AGREES(event_record, cuEventRecord, 2000);
SETO_AGREES(event_query, cuEventQuery, 2000);
SETO_AGREES(event_synchronize, cuEventSynchronize, 2000);
SETO_AGREES(stream_wait_event, cuStreamWaitEvent, 3020);
SETO_AGREES(event_destroy, cuEventDestroy, 4000);
SETO_AGREES(module_load_data, cuModuleLoadData, 2000);
SETO_AGREES(module_unload, cuModuleUnload, 2000);
SETO_AGREES(module_get_function, cuModuleGetFunction, 2000);
SETO_AGREES(module_get_global, cuModuleGetGlobal, 3020);
SETO_AGREES(func_get_attribute, cuFuncGetAttribute, 2020);
SETO_AGREES(func_set_attribute, cuFuncSetAttribute, 9000);
SETO_AGREES(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050);
SETO_AGREES(launch_kernel, cuLaunchKernel, 4000);
SETO_AGREES(launch_kernel_ex, cuLaunchKernelEx, 11060);
SETO_AGREES(launch_cooperative_kernel, cuLaunchCooperativeKernel, 9000);
SETO_AGREES(graph_instantiate, cuGraphInstantiateWithFlags, 11040);
SETO_AGREES(graph_launch, cuGraphLaunch, 10000);
SETO_AGREES(graph_destroy, cuGraphDestroy, 10000);
SETO_AGREES(graph_exec_destroy, cuGraphExecDestroy, 10000);
SETO_AGREES(multicast_create, cuMulticastCreate, 12010);
SETO_AGREES(multicast_add_device, cuMulticastAddDevice, 12010);
SETO_AGREES(multicast_bind_mem, cuMulticastBindMem, 12010);
SETO_AGREES(multicast_unbind, cuMulticastUnbind, 12010);
SETO_AGREES(multicast_get_granularity, cuMulticastGetGranularity, 12010);

static_assert(std::is_same_v<HostFunction, CUhostFn>);
static_assert(std::is_same_v<Stream, CUstream> && std::is_same_v<Context, CUcontext> && std::is_same_v<Event, CUevent>);

#define SETO_SAME_LAYOUT(own, theirs) static_assert(sizeof(own) == sizeof(theirs) && alignof(own) == alignof(theirs), #own)
#define SETO_SAME_PLACE(own, member, theirs, their_member)                                                             \
  static_assert(offsetof(own, member) == offsetof(theirs, their_member) &&                                             \
                    sizeof(static_cast<own*>(nullptr)->member) == sizeof(static_cast<theirs*>(nullptr)->their_member), \
                #own "::" #member)
SETO_SAME_LAYOUT(DeviceUuid, CUuuid);
SETO_SAME_LAYOUT(MulticastProperties, CUmulticastObjectProp);
SETO_SAME_PLACE(MulticastProperties, devices, CUmulticastObjectProp, numDevices);
SETO_SAME_PLACE(MulticastProperties, size, CUmulticastObjectProp, size);
SETO_SAME_PLACE(MulticastProperties, handle_types, CUmulticastObjectProp, handleTypes);
SETO_SAME_PLACE(MulticastProperties, flags, CUmulticastObjectProp, flags);
SETO_SAME_LAYOUT(IpcMemoryHandle, CUipcMemHandle);
SETO_SAME_LAYOUT(MemoryLocation, CUmemLocation);
SETO_SAME_PLACE(MemoryLocation, type, CUmemLocation, type);
SETO_SAME_PLACE(MemoryLocation, id, CUmemLocation, id);
SETO_SAME_LAYOUT(MemoryAccess, CUmemAccessDesc);
SETO_SAME_PLACE(MemoryAccess, location, CUmemAccessDesc, location);
SETO_SAME_PLACE(MemoryAccess, flags, CUmemAccessDesc, flags);
SETO_SAME_LAYOUT(AllocationProperties, CUmemAllocationProp);
SETO_SAME_PLACE(AllocationProperties, type, CUmemAllocationProp, type);
SETO_SAME_PLACE(AllocationProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SETO_SAME_PLACE(AllocationProperties, location, CUmemAllocationProp, location);
SETO_SAME_PLACE(AllocationProperties, windows_data, CUmemAllocationProp, win32HandleMetaData);
SETO_SAME_PLACE(AllocationProperties, flags, CUmemAllocationProp, allocFlags);
SETO_SAME_PLACE(AllocationProperties, flags.gpu_direct_rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SETO_SAME_PLACE(AllocationProperties, flags.usage, CUmemAllocationProp, allocFlags.usage);

#define SETO_SAME(own, theirs) static_assert(static_cast<long long>(own) == static_cast<long long>(theirs), #theirs)

SETO_SAME(DriverCode::success, CUDA_SUCCESS);
SETO_SAME(DriverCode::invalid_value, CUDA_ERROR_INVALID_VALUE);
SETO_SAME(DriverCode::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SETO_SAME(DriverCode::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SETO_SAME(DriverCode::deinitialized, CUDA_ERROR_DEINITIALIZED);
SETO_SAME(DriverCode::stub_library, CUDA_ERROR_STUB_LIBRARY);
SETO_SAME(DriverCode::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
SETO_SAME(DriverCode::no_device, CUDA_ERROR_NO_DEVICE);
SETO_SAME(DriverCode::invalid_device, CUDA_ERROR_INVALID_DEVICE);
SETO_SAME(DriverCode::invalid_image, CUDA_ERROR_INVALID_IMAGE);
SETO_SAME(DriverCode::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SETO_SAME(DriverCode::map_failed, CUDA_ERROR_MAP_FAILED);
SETO_SAME(DriverCode::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SETO_SAME(DriverCode::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SETO_SAME(DriverCode::context_already_in_use, CUDA_ERROR_CONTEXT_ALREADY_IN_USE);
SETO_SAME(DriverCode::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
SETO_SAME(DriverCode::invalid_ptx, CUDA_ERROR_INVALID_PTX);
SETO_SAME(DriverCode::nvlink_uncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SETO_SAME(DriverCode::jit_compiler_not_found, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
SETO_SAME(DriverCode::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SETO_SAME(DriverCode::operating_system, CUDA_ERROR_OPERATING_SYSTEM);
SETO_SAME(DriverCode::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
SETO_SAME(DriverCode::illegal_state, CUDA_ERROR_ILLEGAL_STATE);
SETO_SAME(DriverCode::not_found, CUDA_ERROR_NOT_FOUND);
SETO_SAME(DriverCode::not_ready, CUDA_ERROR_NOT_READY);
SETO_SAME(DriverCode::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
SETO_SAME(DriverCode::launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SETO_SAME(DriverCode::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SETO_SAME(DriverCode::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SETO_SAME(DriverCode::peer_access_not_enabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
SETO_SAME(DriverCode::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SETO_SAME(DriverCode::assertion, CUDA_ERROR_ASSERT);
SETO_SAME(DriverCode::too_many_peers, CUDA_ERROR_TOO_MANY_PEERS);
SETO_SAME(DriverCode::host_memory_already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SETO_SAME(DriverCode::host_memory_not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SETO_SAME(DriverCode::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
SETO_SAME(DriverCode::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SETO_SAME(DriverCode::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
SETO_SAME(DriverCode::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SETO_SAME(DriverCode::invalid_pc, CUDA_ERROR_INVALID_PC);
SETO_SAME(DriverCode::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
SETO_SAME(DriverCode::cooperative_launch_too_large, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SETO_SAME(DriverCode::not_permitted, CUDA_ERROR_NOT_PERMITTED);
SETO_SAME(DriverCode::not_supported, CUDA_ERROR_NOT_SUPPORTED);
SETO_SAME(DriverCode::system_not_ready, CUDA_ERROR_SYSTEM_NOT_READY);
SETO_SAME(DriverCode::system_driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SETO_SAME(DriverCode::compat_not_supported_on_device, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SETO_SAME(DriverCode::mps_connection_failed, CUDA_ERROR_MPS_CONNECTION_FAILED);
SETO_SAME(DriverCode::mps_max_clients_reached, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
SETO_SAME(DriverCode::mps_client_terminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
SETO_SAME(DriverCode::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SETO_SAME(DriverCode::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SETO_SAME(DriverCode::stream_capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
SETO_SAME(DriverCode::stream_capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SETO_SAME(DriverCode::stream_capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SETO_SAME(DriverCode::stream_capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SETO_SAME(DriverCode::stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SETO_SAME(DriverCode::captured_event, CUDA_ERROR_CAPTURED_EVENT);
SETO_SAME(DriverCode::stream_capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SETO_SAME(DriverCode::timeout, CUDA_ERROR_TIMEOUT);
SETO_SAME(DriverCode::unknown, CUDA_ERROR_UNKNOWN);
SETO_SAME(DeviceAttribute::max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SETO_SAME(DeviceAttribute::max_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SETO_SAME(DeviceAttribute::clock_rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SETO_SAME(DeviceAttribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SETO_SAME(DeviceAttribute::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SETO_SAME(DeviceAttribute::compute_mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SETO_SAME(DeviceAttribute::max_threads_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SETO_SAME(DeviceAttribute::unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SETO_SAME(DeviceAttribute::compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SETO_SAME(DeviceAttribute::compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SETO_SAME(DeviceAttribute::max_shared_memory_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SETO_SAME(DeviceAttribute::cooperative_launch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
SETO_SAME(DeviceAttribute::max_shared_memory_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SETO_SAME(DeviceAttribute::can_flush_remote_writes, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES);
SETO_SAME(DeviceAttribute::virtual_memory_management, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SETO_SAME(DeviceAttribute::posix_file_descriptor_handles, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SETO_SAME(DeviceAttribute::gpu_direct_rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
SETO_SAME(DeviceAttribute::gpu_direct_flush_options, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
SETO_SAME(DeviceAttribute::gpu_direct_write_order, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
SETO_SAME(DirectWriteOrder::none, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE);
SETO_SAME(DirectWriteOrder::owner, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
SETO_SAME(DirectWriteOrder::all_gpus, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES);
SETO_SAME(DirectFlushTarget::current_context, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
SETO_SAME(DirectFlushScope::owner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
SETO_SAME(DirectFlushScope::all_gpus, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
SETO_SAME(RangeHandleType::dma_buf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
static_assert(kDirectFlushByHost == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
SETO_SAME(DeviceAttribute::stream_memory_operations_64_bit, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SETO_SAME(DeviceAttribute::dma_buf, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SETO_SAME(DeviceAttribute::multicast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
SETO_SAME(ComputeMode::shared, CU_COMPUTEMODE_DEFAULT);
SETO_SAME(ComputeMode::prohibited, CU_COMPUTEMODE_PROHIBITED);
SETO_SAME(ComputeMode::exclusive_process, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
SETO_SAME(PeerAttribute::performance_rank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK);
SETO_SAME(PeerAttribute::access, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED);
SETO_SAME(PeerAttribute::native_atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
SETO_SAME(PointerAttribute::context, CU_POINTER_ATTRIBUTE_CONTEXT);
SETO_SAME(PointerAttribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SETO_SAME(PointerAttribute::device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SETO_SAME(PointerAttribute::host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SETO_SAME(PointerAttribute::buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SETO_SAME(PointerAttribute::is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SETO_SAME(PointerAttribute::device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SETO_SAME(PointerAttribute::is_legacy_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SETO_SAME(PointerAttribute::range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SETO_SAME(PointerAttribute::range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SETO_SAME(PointerAttribute::mapped, CU_POINTER_ATTRIBUTE_MAPPED);
SETO_SAME(PointerAttribute::allowed_handle_types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SETO_SAME(PointerAttribute::memory_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SETO_SAME(MemoryType::host, CU_MEMORYTYPE_HOST);
SETO_SAME(MemoryType::device, CU_MEMORYTYPE_DEVICE);
SETO_SAME(KernelAttribute::max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SETO_SAME(KernelAttribute::static_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SETO_SAME(KernelAttribute::local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SETO_SAME(KernelAttribute::registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
SETO_SAME(KernelAttribute::max_dynamic_shared_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SETO_SAME(CaptureStatus::none, CU_STREAM_CAPTURE_STATUS_NONE);
SETO_SAME(CaptureStatus::active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SETO_SAME(CaptureStatus::invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SETO_SAME(CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL);
SETO_SAME(CaptureMode::thread_local_only, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SETO_SAME(CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SETO_SAME(ProcAddressResult::success, CU_GET_PROC_ADDRESS_SUCCESS);
SETO_SAME(ProcAddressResult::symbol_not_found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SETO_SAME(ProcAddressResult::version_not_sufficient, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SETO_SAME(kProcAddressLegacyStream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SETO_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SETO_SAME(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
SETO_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SETO_SAME(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
SETO_SAME(kHostAllocDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
SETO_SAME(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
SETO_SAME(kHostRegisterDeviceMap, CU_MEMHOSTREGISTER_DEVICEMAP);
SETO_SAME(kHostRegisterReadOnly, CU_MEMHOSTREGISTER_READ_ONLY);
SETO_SAME(kWaitGreaterOrEqual, CU_STREAM_WAIT_VALUE_GEQ);
SETO_SAME(kWaitEqual, CU_STREAM_WAIT_VALUE_EQ);
SETO_SAME(kIpcLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SETO_SAME(AllocationType::pinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SETO_SAME(HandleType::none, CU_MEM_HANDLE_TYPE_NONE);
SETO_SAME(HandleType::posix_file_descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SETO_SAME(LocationType::device, CU_MEM_LOCATION_TYPE_DEVICE);
SETO_SAME(AccessFlags::none, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SETO_SAME(AccessFlags::read, CU_MEM_ACCESS_FLAGS_PROT_READ);
SETO_SAME(AccessFlags::read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SETO_SAME(Granularity::minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SETO_SAME(Granularity::recommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SETO_SAME(Granularity::minimum, CU_MULTICAST_GRANULARITY_MINIMUM);
SETO_SAME(Granularity::recommended, CU_MULTICAST_GRANULARITY_RECOMMENDED);

// Declarations that are wrong on purpose, so that the test sees that the comparison finds them.
#if defined(SETO_WRONG_DECLARATIONS)
static_assert(agrees(Call<int*, unsigned>{"cuInit", 2000}, static_cast<PFN_cuDeviceGet_v2000>(nullptr)),
              "a wrong argument is found");
static_assert(static_cast<int>(CaptureMode::global) == CU_STREAM_CAPTURE_MODE_RELAXED, "a wrong value is found");
#endif

}  // namespace
}  // namespace seto::cuda
