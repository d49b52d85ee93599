#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace seto::software_gpu {

// Memory of several GPUs behind one address: a multimem address, as the manual calls it.
class MulticastTargets {
 public:
  virtual ~MulticastTargets() = default;
  // Where the bytes lie in the memory of each GPU, as addresses of this process. Throws a Fault if a GPU has no memory there.
  [[nodiscard]] virtual std::vector<std::uint64_t> at(std::uint64_t offset, std::uint32_t bytes) = 0;
};

struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t owner = 0;           // a GPU
  std::uint64_t accessible = ~0ULL;  // a bit for each GPU
  bool read_only = false;            // constants
  std::string name;                  // for reports
  std::uint64_t bytes_read = 0;      // by weak accesses of kernels, each thread counted
  std::uint64_t bytes_written = 0;
  std::uint64_t releases = 0;                     // stores of other GPUs than the owner
  std::shared_ptr<MulticastTargets> multicast{};  // null: ordinary memory
  std::uint64_t multicast_offset = 0;             // of the first byte
  std::function<bool()> is_gone{};                // null: it is there until it is removed. Asked at each access
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
  // The same for a multimem address, which only multimem instructions may access: the places that it stands for.
  [[nodiscard]] std::vector<std::uint64_t> multicast_places(std::uint64_t address, std::uint32_t bytes, std::uint32_t gpu);
  // Count accesses of the allocation of the last check().
  void count_read(std::uint32_t bytes) { last_->bytes_read += bytes; }
  void count_written(std::uint32_t bytes) { last_->bytes_written += bytes; }
  void count_release(std::uint32_t gpu) { last_->releases += gpu == last_->owner ? 0 : 1; }

 private:
  void find_access(std::uint64_t address, std::uint32_t bytes, std::uint32_t gpu);
  [[nodiscard]] std::string nearest(std::uint64_t address) const;

  std::map<std::uint64_t, Allocation> allocations_;
  Allocation* last_ = nullptr;  // most accesses are near the one before
};

}  // namespace seto::software_gpu
