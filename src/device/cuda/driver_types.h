#pragma once

#include <cstddef>
#include <cstdint>

// The handles of the driver have the tags that CUDA's header gives them, so that a stream or a context of a CUDA program is of
// the same type here.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUgraphEdgeData_st;

// Declarations of the CUDA driver API, as far as the library calls it, because no CUDA header is there when the library is built.
// A test compares them with CUDA's own header.
namespace seto::cuda {

using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Module = CUmod_st*;
using Kernel = CUfunc_st*;
using Graph = CUgraph_st*;
using GraphNode = CUgraphNode_st*;
using GraphExec = CUgraphExec_st*;
using DeviceNumber = int;
using DevicePointer = unsigned long long;
using MemoryHandle = unsigned long long;  // memory of cuMemCreate, or a multicast object
using HostFunction = void (*)(void*);

inline constexpr std::uintptr_t kLegacyStream = 1;     // CU_STREAM_LEGACY
inline constexpr std::uintptr_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

enum class DeviceAttribute : std::uint32_t {
  max_threads_per_block = 1,
  max_shared_memory_per_block = 8,
  clock_rate = 13,
  multiprocessor_count = 16,
  integrated = 18,
  compute_mode = 20,
  max_threads_per_multiprocessor = 39,
  unified_addressing = 41,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_multiprocessor = 81,
  cooperative_launch = 95,
  max_shared_memory_per_block_optin = 97,
  can_flush_remote_writes = 98,
  virtual_memory_management = 102,
  posix_file_descriptor_handles = 103,
  gpu_direct_rdma = 116,
  gpu_direct_flush_options = 117,
  gpu_direct_write_order = 118,
  stream_memory_operations_64_bit = 122,
  dma_buf = 124,
  multicast = 132,
};

enum class ComputeMode : std::uint32_t { shared = 0, prohibited = 2, exclusive_process = 3 };

enum class PeerAttribute : std::uint32_t { performance_rank = 1, access = 2, native_atomics = 3 };

enum class PointerAttribute : std::uint32_t {
  context = 1,
  memory_type = 2,
  device_pointer = 3,
  host_pointer = 4,
  buffer_id = 7,
  is_managed = 8,
  device = 9,
  is_legacy_ipc_capable = 10,
  range_start = 11,
  range_size = 12,
  mapped = 13,
  allowed_handle_types = 14,
  memory_pool = 17,
};

enum class MemoryType : std::uint32_t { host = 1, device = 2 };

enum class KernelAttribute : std::uint32_t {
  max_threads_per_block = 0,
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  max_dynamic_shared_bytes = 8,
};

enum class CaptureStatus : std::uint32_t { none = 0, active = 1, invalidated = 2 };
enum class CaptureMode : std::uint32_t { global = 0, thread_local_only = 1, relaxed = 2 };
enum class ProcAddressResult : std::uint32_t { success = 0, symbol_not_found = 1, version_not_sufficient = 2 };

// Answers to gpu_direct_write_order: for which GPUs writes of other devices need no flush.
enum class DirectWriteOrder : std::uint32_t { none = 0, owner = 100, all_gpus = 200 };
enum class DirectFlushTarget : std::uint32_t { current_context = 0 };
enum class DirectFlushScope : std::uint32_t { owner = 100, all_gpus = 200 };
enum class RangeHandleType : std::uint32_t { dma_buf = 1 };

enum class LaunchAttributeNumber : std::uint32_t { launch_completion_event = 12 };

// One of several forms that CUDA's attribute has: the event is recorded once all blocks of the kernel have begun.
struct LaunchAttribute {
  LaunchAttributeNumber number = LaunchAttributeNumber::launch_completion_event;
  std::uint32_t padding = 0;
  Event event = nullptr;
  int flags = 0;
  std::uint8_t other_forms[52] = {};
};

struct LaunchConfiguration {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared = 0;
  Stream stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// Flags, which the driver takes as plain numbers.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1, kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1, kHostAllocDeviceMap = 2;
inline constexpr unsigned kHostRegisterPortable = 1, kHostRegisterDeviceMap = 2, kHostRegisterReadOnly = 8;
inline constexpr unsigned kWaitGreaterOrEqual = 0, kWaitEqual = 1;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr int kDirectFlushByHost = 1;  // a bit of gpu_direct_flush_options: the host may call the flush
inline constexpr std::uint64_t kProcAddressLegacyStream = 1;

}  // namespace seto::cuda
