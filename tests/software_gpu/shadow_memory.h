#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/software_gpu/causality.h"

namespace seto::software_gpu {

// An access as the race check remembers it.
struct Record {
  std::uint64_t address = 0;
  std::uint8_t bytes = 0;
  std::uint8_t mask = 0;  // of the bytes of its cell
  bool writes = false;
  bool strong = false;
  Scope scope = Scope::system;
  std::uint32_t gpu = 0;
  std::uint32_t line = 0;
  Moment at{};
  std::uint64_t write = 0;  // the number of a strong write

  [[nodiscard]] bool is_same_place(const Record& other) const { return address == other.address && bytes == other.bytes; }
  // As the manual defines it: strong, with scopes that include each other's thread, and of the same bytes.
  [[nodiscard]] bool is_morally_strong_with(const Record& other) const;
};

// A thread has read a value of a strong write, or one that followed it there. What happens after that happens after the write.
struct Observation {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint64_t write = 0;
  Moment at{};
};

// The accesses of 8 bytes that a later access may have a race with.
class Cell final {
 public:
  [[nodiscard]] const std::vector<Record>& writes() const { return writes_; }
  [[nodiscard]] const std::vector<Record>& reads() const { return reads_; }
  [[nodiscard]] const std::vector<Observation>& observations() const { return observations_; }

  // Quick: whether the thread has made the same access in the same moment, so that it finds nothing new.
  [[nodiscard]] bool has_same(const Record& record) const;
  // Quick: whether all accesses are morally strong with this one; false if that is not known.
  [[nodiscard]] bool is_uniform_with(const Record& record) const;
  void add(const Record& record);
  void add(const Observation& observation);

 private:
  // The things that all accesses have in common, as long as all are strong and of the same bytes.
  struct Common {
    bool strong = true;
    Record first{};  // with the narrowest scope of all
    bool one_gpu = true, one_block = true;
  };

  void note(const Record& record);
  static void drop_covered(std::vector<Record>& records, const Record& by);
  static void append(std::vector<Record>& records, const Record& record, std::uint32_t& limit);

  std::vector<Record> writes_, reads_;
  std::vector<Observation> observations_;
  Common common_{};
  std::uint32_t write_limit_ = 16, read_limit_ = 16, observation_limit_ = 16;
};

// The cells of a memory that have been accessed.
class ShadowMemory final {
 public:
  static constexpr std::uint64_t kCellBytes = 8;

  // The cell of a byte.
  Cell& cell(std::uint64_t address);
  void clear();

 private:
  static constexpr std::uint64_t kPageCells = 128;
  using Page = std::array<std::uint32_t, kPageCells>;  // positions in cells_, from 1; 0: none

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::deque<Cell> cells_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_ = nullptr;  // most accesses are near the one before
};

}  // namespace seto::software_gpu
