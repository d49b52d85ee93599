#pragma once

#include <bitset>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tests/software_gpu/causality.h"

namespace seto::software_gpu {

// The strong writes whose values are in a memory, by location. It is exact: a write of another size or a weak one takes its
// place.
class WriteSources final {
 public:
  void set(std::uint64_t address, std::uint32_t bytes, const WriteRef& write) {
    if (write != nullptr || may_have_[slot_of(address)]) replace(address, bytes, write);
  }
  // Null unless one strong write made all of these bytes and no others.
  [[nodiscard]] WriteRef at(std::uint64_t address, std::uint32_t bytes) const;
  void clear();

 private:
  struct Source {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    WriteRef write;
  };

  static std::uint64_t granule_of(std::uint64_t address) { return address >> 4; }
  static std::size_t slot_of(std::uint64_t address) { return granule_of(address) % 1021; }
  void replace(std::uint64_t address, std::uint32_t bytes, const WriteRef& write);

  std::unordered_map<std::uint64_t, std::vector<Source>> sources_;  // by 16 bytes
  std::bitset<1021> may_have_;                                      // quick: false for most addresses of data
};

}  // namespace seto::software_gpu
