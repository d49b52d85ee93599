#pragma once

#include <cstdint>
#include <optional>

#include "src/plan/plan.h"

// Logical chunks number the data of a whole collective, the same on every rank. This file maps them to the input and output of
// each rank. Below, "piece" is the index of a chunk within its part, and the one part of a reduction or broadcast is the whole
// buffer.
//
//   collective             logical chunk         input of rank r            output of rank r
//   all_reduce, barrier    piece                 all                        all
//   reduce / broadcast     piece                 all / the root's           the root's / all
//   all_gather, gather     (owner, piece)        owner == r                 all / all at the root
//   reduce_scatter         (owner, piece)        all                        owner == r
//   scatter                (owner, piece)        all at the root            owner == r
//   all_to_all             (from, to, piece)     from == r                  to == r
//
// In place means that a logical chunk that is in both the input and the output of a rank has the same memory in both.
namespace seto {

std::uint32_t logical_chunks(const Shape& shape);
std::uint32_t input_chunks(const Shape& shape, Rank rank);
std::uint32_t output_chunks(const Shape& shape, Rank rank);

std::optional<std::uint32_t> input_index(const Shape& shape, Rank rank, std::uint32_t chunk);
std::optional<std::uint32_t> output_index(const Shape& shape, Rank rank, std::uint32_t chunk);

// The logical chunk at an index of the output. It is the inverse of output_index.
std::uint32_t chunk_of_output(const Shape& shape, Rank rank, std::uint32_t index);
std::uint32_t chunk_of_input(const Shape& shape, Rank rank, std::uint32_t index);

bool reduces(Collective collective);

// The rank whose contribution the finished chunk holds, or all ranks.
Rank owner_of(const Shape& shape, std::uint32_t chunk);

}  // namespace seto
