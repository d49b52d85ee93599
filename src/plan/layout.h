#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/plan/plan.h"

namespace seto {

// A range of elements of one chunk.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

// The positions, in elements, of the chunks in one rank's buffers. It turns a plan without sizes into addresses.
//
// Every part (the whole buffer of an all_reduce, one rank's share of an all_gather) is cut into `pieces` chunks, as even as whole
// grains allow. The last grain may be short, and chunks may be empty. Cuts depend only on (part, pieces, grain), so all ranks cut
// alike. The caller has checked that counts, and the sum of a table, stay below 2^62.
class Layout final {
 public:
  // `count` is the number of elements of the one part of all_reduce, reduce, broadcast and barrier, else of each part.
  static Layout uniform(const Shape& shape, Rank rank, std::uint64_t count, std::uint32_t grain);

  // For all_gather and reduce_scatter with parts of different lengths. Without displacements the parts are contiguous.
  static Layout table(const Shape& shape, Rank rank, std::span<const std::uint64_t> counts,
                      std::span<const std::uint64_t> displacements, std::uint32_t grain);

  [[nodiscard]] std::uint64_t length(std::uint32_t chunk) const;  // length of a logical chunk
  [[nodiscard]] std::uint64_t input_offset(std::uint32_t index) const;
  [[nodiscard]] std::uint64_t output_offset(std::uint32_t index) const;
  [[nodiscard]] std::uint64_t longest() const { return longest_; }  // length of the longest logical chunk

  // Slices are cut alike in every chunk: slice s of a step is slice s of each of its chunks. There is at least one slice, so that
  // a plan without data still runs.
  [[nodiscard]] std::uint64_t slices(std::uint64_t slice_length) const;
  [[nodiscard]] Extent slice(std::uint32_t chunk, std::uint64_t index, std::uint64_t slice_length) const;

 private:
  Layout(const Shape& shape, Rank rank, std::uint64_t count, std::uint32_t grain);

  [[nodiscard]] std::uint32_t part_of(std::uint32_t chunk) const { return chunk / shape_.pieces; }
  [[nodiscard]] std::uint64_t part_length(std::uint32_t part) const { return counts_.empty() ? count_ : counts_[part]; }
  [[nodiscard]] std::uint64_t part_offset(std::uint32_t part) const {
    return counts_.empty() ? std::uint64_t{part} * count_ : displacements_[part];
  }
  // The start of chunk `piece` in a part of that length; for piece == pieces, the length.
  [[nodiscard]] std::uint64_t cut(std::uint64_t length, std::uint32_t piece) const;

  Shape shape_;
  std::uint32_t own_;  // the part that a buffer of one part holds
  std::uint64_t count_;
  std::uint32_t grain_;
  std::uint64_t longest_ = 0;
  std::vector<std::uint64_t> counts_;  // by part; empty when uniform
  std::vector<std::uint64_t> displacements_;
};

}  // namespace seto
