#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/common/types.h"

namespace seto::bench {

// Inputs whose reduction is exact in the element type whatever the order, the grouping and the place of the roundings, so that
// a result is compared bit by bit:
// - sum, mulsum of floats: integers times one power of two per element, whose absolute values add up to at most 2^precision;
// - prod of floats: signed powers of two whose exponents stay in range whichever subset is multiplied first; one rank, another
//   for each element, adds a full significand;
// - min, max: any finite values but zeros, which have two representations;
// - avg of floats over 2^k ranks: as sum; over other counts two ranks, others for each element, contribute the same value, so
//   that scaling before or after the sum differs by at most two units in the last place, which is what count_wrong allows there
//   and nowhere else;
// - integers: any bits (sums and products wrap), odd factors, and for avg a sum that stays in range of few large values.
// Where the precision allows fewer contributors than there are ranks (8 for e5m2, 16 for e4m3, half of that for mulsum), the
// others contribute zero to that element; which ones do changes from element to element.
struct Pattern {
  setoDataType_t type;
  Op op;
  int ranks;
  std::uint64_t seed;
};

// `first` is the element's index in the rank's send buffer. All functions: any thread, no state.
void fill_reduce_input(const Pattern& pattern, int rank, std::size_t first, std::span<std::byte> target);
void fill_reduce_expected(const Pattern& pattern, std::size_t first, std::span<std::byte> target);

// Pseudo-random bytes for collectives that only move data; the expected value of an element is its sender's input.
void fill_moved_input(std::uint64_t seed, int rank, std::size_t element_size, std::size_t first, std::span<std::byte> target);

// The scalar of a rank for mulsum: one value of the type at `target`.
void write_scalar(const Pattern& pattern, int rank, void* target);
// Of floats.
double largest_scalar();

// Elements of `actual` that differ from `expected` (by more than two units in the last place where `op` is avg of floats).
std::uint64_t count_wrong(const Pattern& pattern, std::span<const std::byte> expected, std::span<const std::byte> actual);
// Of floats: those that are further off than that, or no number.
std::uint64_t count_beyond(setoDataType_t type, double bound, std::span<const std::byte> expected,
                           std::span<const std::byte> actual);
double largest_magnitude(setoDataType_t type, std::span<const std::byte> values);
std::uint64_t count_differing(std::size_t element_size, std::span<const std::byte> expected, std::span<const std::byte> actual);

}  // namespace seto::bench
