#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/device/cuda/driver_memory.h"
#include "src/device/cuda/driver_types.h"
#include "tests/software_gpu/address_map.h"
#include "tests/software_gpu/driver/settings.h"

namespace seto::software_gpu::driver {

class MulticastObject;

// Memory of a GPU: a memory file, so that other processes can map it. Its name says the GPU.
struct PhysicalMemory {
  int file = -1;
  std::uint64_t bytes = 0;
  std::uint32_t gpu = 0;
  bool exportable = false;
  bool for_devices = false;                      // of cuMemCreate: made with gpuDirectRDMACapable
  bool counted = true;                           // against the memory of the GPU; not where another process made it
  std::uint64_t inode = 0;                       // of the file: the same in all processes
  std::shared_ptr<MulticastObject> multicast{};  // not null: this is such an object, and has no bytes of its own

  PhysicalMemory() = default;
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  ~PhysicalMemory();
};

// A range that calls of the driver know.
struct Range {
  enum class Kind : std::uint8_t { device, mapped, imported, host, registered };

  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  Kind kind = Kind::device;
  std::uint32_t gpu = 0;
  std::shared_ptr<PhysicalMemory> memory{};
  std::uint64_t number = 0;  // no two ranges of a process have the same
  std::uint64_t offset = 0;  // in the memory

  [[nodiscard]] bool is_host() const { return kind == Kind::host || kind == Kind::registered; }
};

// All memory of the driver: what is allocated, reserved, mapped, and which GPU may access it. Functions throw DriverError.
class MemoryTable final {
 public:
  static constexpr std::uint64_t kGranularity = 2ULL << 20;

  MemoryTable(const Settings& settings, AddressMap& addresses);
  ~MemoryTable();
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // `peers`: a bit for each GPU that reaches the memory besides its own.
  std::uint64_t allocate(std::uint32_t gpu, std::uint64_t bytes, std::uint64_t peers);
  std::uint64_t allocate_host(std::uint64_t bytes);
  void register_host(std::uint64_t address, std::uint64_t bytes);
  // Throws `otherwise` unless a range of this kind begins here.
  void release(std::uint64_t address, Range::Kind kind, cuda::DriverCode otherwise);
  // GPUs that reach all memory of `owner` that was allocated as a whole, from now on.
  void add_peers(std::uint32_t owner, std::uint64_t peers);

  std::shared_ptr<PhysicalMemory> create(std::uint32_t gpu, std::uint64_t bytes, bool exportable);
  std::shared_ptr<PhysicalMemory> import_file(int file, std::uint64_t bytes_wanted);
  // Memory that this process has opened by legacy IPC.
  std::uint64_t map_imported(const std::shared_ptr<PhysicalMemory>& memory, int exporter, std::uint64_t peers);

  std::uint64_t reserve(std::uint64_t bytes, std::uint64_t alignment);
  void free_reserved(std::uint64_t address, std::uint64_t bytes);
  void map(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset, const std::shared_ptr<PhysicalMemory>& memory);
  void unmap(std::uint64_t address, std::uint64_t bytes);
  void set_access(std::uint64_t address, std::uint64_t bytes, std::uint32_t gpu, bool permitted);

  // Where a byte of a memory file is mapped in this process, by the first such range; 0: nowhere.
  [[nodiscard]] std::uint64_t mapped_at(std::uint64_t inode, std::uint64_t offset) const;
  [[nodiscard]] std::uint64_t used(std::uint32_t gpu) const;
  // Bytes that weak stores of kernels have written to what is allocated and mapped now.
  [[nodiscard]] std::uint64_t written() const;
  // The range that holds an address; null: none.
  [[nodiscard]] const Range* find(std::uint64_t address) const;
  // Throws unless one range, or several in a row, hold all of the bytes.
  void check(std::uint64_t address, std::uint64_t bytes, const char* what) const;

 private:
  void add(Range range, std::uint64_t accessible, const std::string& name, std::function<bool()> is_gone = {});
  std::vector<Range*> mapped_in(std::uint64_t address, std::uint64_t bytes);
  void check_space(std::uint32_t gpu, std::uint64_t bytes) const;

  const Settings& settings_;
  AddressMap& addresses_;
  std::map<std::uint64_t, Range> ranges_;
  std::map<std::uint64_t, std::uint64_t> reserved_;    // address -> bytes
  std::map<std::uint64_t, std::uint64_t> accessible_;  // of a range, by its address
  std::vector<std::weak_ptr<PhysicalMemory>> created_;
  std::uint64_t next_number_ = 1;
};

}  // namespace seto::software_gpu::driver
