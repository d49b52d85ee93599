#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace seto::software_gpu {

struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t owner = 0;           // a GPU
  std::uint64_t accessible = ~0ULL;  // a bit for each GPU
  bool read_only = false;            // constants
  std::string name;                  // for reports
  std::uint64_t bytes_read = 0;      // by weak accesses of kernels, each thread counted
  std::uint64_t bytes_written = 0;
};

// Every piece of global memory. Device addresses are addresses of this process.
class AddressMap final {
 public:
  void add(Allocation allocation);
  void remove(std::uint64_t address);
  void set_accessible(std::uint64_t address, std::uint64_t gpus);
  // The allocation that begins at the address; null: none.
  [[nodiscard]] const Allocation* find(std::uint64_t address) const;

  // Throws a Fault if the access leaves its allocation, or if the GPU may not make it.
  void check(std::uint64_t address, std::uint32_t bytes, std::uint32_t gpu, bool writes);
  // Count bytes of the allocation of the last check().
  void count_read(std::uint32_t bytes) { last_->bytes_read += bytes; }
  void count_written(std::uint32_t bytes) { last_->bytes_written += bytes; }

 private:
  [[nodiscard]] std::string nearest(std::uint64_t address) const;

  std::map<std::uint64_t, Allocation> allocations_;
  Allocation* last_ = nullptr;  // most accesses are near the one before
};

}  // namespace seto::software_gpu
