#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/software_gpu/bits.h"
#include "tests/software_gpu/causality.h"
#include "tests/software_gpu/instruction.h"

namespace seto::software_gpu {

using Clock = std::uint64_t;

struct PendingStore {
  enum class Kind : std::uint8_t { store, release, fence };

  Kind kind = Kind::store;
  Scope scope = Scope::system;  // of a release or fence
  std::uint32_t bytes = 0;
  std::uint32_t block = 0;  // that made it
  std::uint64_t address = 0;
  Bits128 bits{};
  Clock visible_in_gpu = 0;
  WriteRef write{};  // for the race check

  [[nodiscard]] bool overlaps(std::uint64_t other, std::uint32_t size) const {
    return address < other + size && other < address + bytes;
  }
  // Writes its bytes into those of [first, first + size).
  void overlay(std::uint64_t first, std::uint32_t size, unsigned char* into) const;
  // Likewise; `source`, which may be null, becomes the write of which all of these bytes are.
  void overlay(std::uint64_t first, std::uint32_t size, unsigned char* into, WriteRef* source) const;
};

// Stores in program order. Its owner decides which leaves first.
class StoreBuffer final {
 public:
  [[nodiscard]] bool empty() const { return stores_.empty(); }
  [[nodiscard]] std::size_t size() const { return stores_.size(); }
  [[nodiscard]] const PendingStore& at(std::size_t position) const { return stores_[position]; }
  [[nodiscard]] const std::vector<PendingStore>& all() const { return stores_; }
  [[nodiscard]] bool has_fence() const { return fences_ > 0; }

  void add(const PendingStore& store);
  PendingStore take(std::size_t position);

  // Quick: false for most addresses without a store.
  [[nodiscard]] bool may_overlap(std::uint64_t address) const { return counts_[slot_of(address)] != 0; }
  void overlay(std::uint64_t address, std::uint32_t size, unsigned char* into, WriteRef* source) const;
  // The number of stores that must leave before the last one that overlaps has left.
  [[nodiscard]] std::size_t after_last_overlap(std::uint64_t address, std::uint32_t size) const;
  // The first store that must leave before `position` or with it: an earlier one of the same address, or an earlier fence.
  [[nodiscard]] std::size_t first_before(std::size_t position) const;

 private:
  static std::size_t slot_of(std::uint64_t address) { return (address >> 4) & 63U; }

  std::vector<PendingStore> stores_;
  std::array<std::uint16_t, 64> counts_{};
  std::size_t fences_ = 0;
};

}  // namespace seto::software_gpu
