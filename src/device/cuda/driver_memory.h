#pragma once

#include <cstddef>
#include <cstdint>

namespace seto::cuda {

// The layouts of the structures that calls about memory take.

enum class AllocationType : std::uint32_t { pinned = 1 };
enum class HandleType : std::uint32_t { none = 0, posix_file_descriptor = 1 };
enum class LocationType : std::uint32_t { device = 1 };
enum class AccessFlags : std::uint32_t { none = 0, read = 1, read_write = 3 };
enum class Granularity : std::uint32_t { minimum = 0, recommended = 1 };

struct MemoryLocation {
  LocationType type = LocationType::device;
  int id = 0;  // a DeviceNumber
};

struct AllocationProperties {
  struct Flags {
    unsigned char compression = 0;
    unsigned char gpu_direct_rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  };

  AllocationType type = AllocationType::pinned;
  HandleType handle_types = HandleType::none;
  MemoryLocation location{};
  void* windows_data = nullptr;
  Flags flags{};
};

struct MemoryAccess {
  MemoryLocation location{};
  AccessFlags flags = AccessFlags::read_write;
};

// A multicast object: the same range of memory on several GPUs, behind one address.
struct MulticastProperties {
  unsigned devices = 0;
  std::size_t size = 0;                 // bytes, on each GPU
  unsigned long long handle_types = 0;  // bits of HandleType
  unsigned long long flags = 0;
};

// A handle of legacy IPC, which stands for the whole allocation that holds a pointer.
struct IpcMemoryHandle {
  char bytes[64] = {};
};

struct DeviceUuid {
  char bytes[16] = {};
};

}  // namespace seto::cuda
