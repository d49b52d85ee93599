#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/software_gpu/address_map.h"
#include "tests/software_gpu/driver/memory_table.h"

namespace seto::software_gpu::driver {

// A multicast object: memory of several GPUs behind one address. Which GPUs it has, and which memory each has bound, lies in a
// memory file, so that processes share it. Each process has mappings of its own of memory that others have bound.
class MulticastObject final : public MulticastTargets {
 public:
  static std::shared_ptr<MulticastObject> create(std::uint32_t gpus, std::uint64_t bytes, const MemoryTable& table);
  // The object may be one of another handle or process. Null: the file is none. The caller keeps the descriptor that it gave.
  static std::shared_ptr<MulticastObject> open(int file, const MemoryTable& table);
  // The memory for which a handle stands.
  static std::shared_ptr<PhysicalMemory> memory_of(const std::shared_ptr<MulticastObject>& object, bool exportable);
  ~MulticastObject() override;
  MulticastObject(const MulticastObject&) = delete;
  MulticastObject& operator=(const MulticastObject&) = delete;

  // These throw a DriverError.
  void add(std::uint32_t gpu);
  void bind(std::uint64_t offset, const std::shared_ptr<PhysicalMemory>& memory, std::uint64_t memory_offset,
            std::uint64_t bytes);
  void unbind(std::uint32_t gpu, std::uint64_t offset, std::uint64_t bytes);

  // Maps what other processes have bound: one that dies later is still read, as on a real machine.
  void map_bound();

  [[nodiscard]] bool has(std::uint32_t gpu) const;
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] std::vector<std::uint64_t> at(std::uint64_t offset, std::uint32_t bytes) override;

 private:
  struct Shared;
  struct Binding;

  MulticastObject(int file, const MemoryTable& table);
  [[nodiscard]] std::uint64_t address_of(const Binding& binding);

  const MemoryTable& table_;
  int file_ = -1;
  Shared* shared_ = nullptr;
  std::vector<std::shared_ptr<PhysicalMemory>> bound_;  // here: the object keeps them
  struct Mapping {
    std::uint64_t address = 0, bytes = 0;
  };
  std::map<std::uint64_t, Mapping> others_;  // memory that is mapped nowhere else here, by inode
};

[[nodiscard]] std::uint64_t inode_of(int file);

}  // namespace seto::software_gpu::driver
