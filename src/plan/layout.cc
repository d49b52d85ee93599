#include "src/plan/layout.h"

#include <algorithm>

#include "src/base/check.h"

namespace seto {

Layout::Layout(const Shape& shape, Rank rank, std::uint64_t count, std::uint32_t grain)
    : shape_(shape), own_(static_cast<std::uint32_t>(rank)), count_(count), grain_(grain) {
  SETO_CHECK(grain_ > 0 && shape_.pieces > 0);
}

Layout Layout::uniform(const Shape& shape, Rank rank, std::uint64_t count, std::uint32_t grain) {
  Layout layout(shape, rank, count, grain);
  layout.longest_ = layout.cut(count, 1);  // no piece is longer than the first
  return layout;
}

Layout Layout::table(const Shape& shape, Rank rank, std::span<const std::uint64_t> counts,
                     std::span<const std::uint64_t> displacements, std::uint32_t grain) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  SETO_CHECK(shape.collective == Collective::all_gather || shape.collective == Collective::reduce_scatter);
  SETO_CHECK(counts.size() == ranks && (displacements.empty() || displacements.size() == ranks));
  Layout layout(shape, rank, 0, grain);
  layout.counts_.assign(counts.begin(), counts.end());
  layout.displacements_.assign(displacements.begin(), displacements.end());
  std::uint64_t next = 0;
  for (const std::uint64_t count : counts) {
    layout.longest_ = std::max(layout.longest_, layout.cut(count, 1));
    if (displacements.empty()) layout.displacements_.push_back(next);
    next += count;
  }
  return layout;
}

std::uint64_t Layout::cut(std::uint64_t length, std::uint32_t piece) const {
  const std::uint64_t grains = (length + grain_ - 1) / grain_;
  const std::uint64_t each = grains / shape_.pieces;
  const std::uint64_t longer = grains % shape_.pieces;  // this number of first pieces have one grain more
  const std::uint64_t begin = each * piece + std::min<std::uint64_t>(piece, longer);
  return std::min(length, begin * grain_);
}

std::uint64_t Layout::length(std::uint32_t chunk) const {
  const std::uint64_t part = part_length(part_of(chunk));
  const std::uint32_t piece = chunk % shape_.pieces;
  return cut(part, piece + 1) - cut(part, piece);
}

// With a table the parts differ, so a buffer of one part must state which part it holds.
std::uint64_t Layout::input_offset(std::uint32_t index) const {
  const bool one_part = !counts_.empty() && shape_.collective == Collective::all_gather;
  const std::uint32_t part = one_part ? own_ : part_of(index);
  return (one_part ? 0 : part_offset(part)) + cut(part_length(part), index % shape_.pieces);
}

std::uint64_t Layout::output_offset(std::uint32_t index) const {
  const bool one_part = !counts_.empty() && shape_.collective == Collective::reduce_scatter;
  const std::uint32_t part = one_part ? own_ : part_of(index);
  return (one_part ? 0 : part_offset(part)) + cut(part_length(part), index % shape_.pieces);
}

std::uint64_t Layout::slices(std::uint64_t slice_length) const {
  return std::max<std::uint64_t>(1, longest_ / slice_length + (longest_ % slice_length != 0 ? 1 : 0));
}

Extent Layout::slice(std::uint32_t chunk, std::uint64_t index, std::uint64_t slice_length) const {
  const std::uint64_t all = length(chunk);
  const std::uint64_t begin = std::min(all, index * slice_length);
  return {begin, std::min(slice_length, all - begin)};
}

}  // namespace seto
