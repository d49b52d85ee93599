#pragma once

#include <cstdint>
#include <optional>

#include "src/plan/plan.h"

// Logical chunks number the data of a whole collective, the same on every rank. This file says which of them each rank's input
// and output hold, and where. With a part a rank (or the whole buffer as the one part of a reduction or broadcast):
//
//   collective             logical chunk         input of rank r            output of rank r
//   all_reduce, barrier    piece                 all                        all
//   reduce / broadcast     piece                 all / the root's           the root's / all
//   all_gather, gather     (owner, piece)        owner == r                 all / all at the root
//   reduce_scatter         (owner, piece)        all                        owner == r
//   scatter                (owner, piece)        all at the root            owner == r
//   all_to_all             (from, to, piece)     from == r                  to == r
//
// In place means: where a logical chunk is in both input and output of a rank, the two are the same memory.
namespace seto {

std::uint32_t logical_chunks(const Shape& shape);
std::uint32_t input_chunks(const Shape& shape, Rank rank);
std::uint32_t output_chunks(const Shape& shape, Rank rank);

std::optional<std::uint32_t> input_index(const Shape& shape, Rank rank, std::uint32_t chunk);
std::optional<std::uint32_t> output_index(const Shape& shape, Rank rank, std::uint32_t chunk);

// The logical chunk at a place of the output: the inverse of output_index.
std::uint32_t chunk_of_output(const Shape& shape, Rank rank, std::uint32_t index);
std::uint32_t chunk_of_input(const Shape& shape, Rank rank, std::uint32_t index);

bool reduces(Collective collective);

// Which ranks' contributions the finished chunk holds: all of them, or (for a moved chunk) its one owner.
Rank owner_of(const Shape& shape, std::uint32_t chunk);

}  // namespace seto
