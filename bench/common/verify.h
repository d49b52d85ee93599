#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/common/types.h"

namespace seto::bench {

// Inputs whose reduction is exact in the element type for every order, grouping and position of the roundings, so that a result
// is compared bit by bit:
// - sum, mulsum of floats: integers times one power of two for each element, whose absolute values add up to at most 2^precision;
// - prod of floats: signed powers of two whose exponents stay in range for every order of multiplication; one rank, which changes
//   from element to element, adds a full significand;
// - min, max: any finite values except zeros, which have two representations;
// - avg of floats over 2^k ranks: like sum. Over other counts two ranks, which change from element to element, contribute the
//   same value, so that scaling before or after the sum differs by at most two units in the last place; count_wrong allows that
//   only there;
// - integers: any bits (sums and products wrap), odd factors, and for avg a sum of few large values that stays in range.
// If the precision allows fewer contributors than there are ranks (8 for e5m2, 16 for e4m3, half of that for mulsum), the others
// contribute zero to that element; the contributors change from element to element.
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
// The largest value of write_scalar() for floats.
double largest_scalar();

// The number of elements of `actual` that differ from `expected` (by more than two units in the last place if `op` is avg of
// floats).
std::uint64_t count_wrong(const Pattern& pattern, std::span<const std::byte> expected, std::span<const std::byte> actual);
// For floats: the number of elements whose error exceeds the bound, or that are NaN.
std::uint64_t count_beyond(setoDataType_t type, double bound, std::span<const std::byte> expected,
                           std::span<const std::byte> actual);
double largest_magnitude(setoDataType_t type, std::span<const std::byte> values);
std::uint64_t count_differing(std::size_t element_size, std::span<const std::byte> expected, std::span<const std::byte> actual);

}  // namespace seto::bench
