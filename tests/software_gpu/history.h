#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "tests/software_gpu/store_buffer.h"

namespace seto::software_gpu {

// A store that has reached system memory, with the bytes that it replaced.
struct Overwrite {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t gpu = 0, block = 0;  // that made the store
  Bits128 old{};
  WriteRef old_write{};  // for the race check
  Clock visible_in_gpu = 0;
  Clock visible_in_system = 0;
};

// The youngest overwrites of each 16 bytes, so that a load can return a value that is no longer there.
class History final {
 public:
  void add(const Overwrite& overwrite);
  // From the oldest to the youngest; nullptr: none.
  [[nodiscard]] const std::vector<Overwrite>* of(std::uint64_t address) const;
  void clear();

  static constexpr std::uint64_t granule_of(std::uint64_t address) { return address & ~std::uint64_t{15}; }

 private:
  static constexpr std::size_t kGranules = 16'384;  // remembered
  static constexpr std::size_t kDepth = 6;          // overwrites of one granule

  std::unordered_map<std::uint64_t, std::vector<Overwrite>> overwrites_;
  std::deque<std::uint64_t> order_;  // of granules, for forgetting the oldest
};

}  // namespace seto::software_gpu
