#include "src/plan/chunk_map.h"

namespace seto {
namespace {

using Index = std::optional<std::uint32_t>;

std::uint32_t rank_count(const Shape& shape) { return static_cast<std::uint32_t>(shape.ranks); }

// For chunks (owner, piece), the owner's place is the number of the piece.
Index own_part(const Shape& shape, Rank rank, std::uint32_t chunk) {
  if (chunk / shape.pieces != static_cast<std::uint32_t>(rank)) return std::nullopt;
  return chunk % shape.pieces;
}

Index at_root(const Shape& shape, Rank rank, std::uint32_t chunk) { return rank == shape.root ? Index(chunk) : std::nullopt; }

Index sent_part(const Shape& shape, Rank rank, std::uint32_t chunk) {
  const std::uint32_t row = rank_count(shape) * shape.pieces;
  if (chunk / row != static_cast<std::uint32_t>(rank)) return std::nullopt;
  return chunk % row;
}

Index received_part(const Shape& shape, Rank rank, std::uint32_t chunk) {
  const std::uint32_t pair = chunk / shape.pieces;
  if (pair % rank_count(shape) != static_cast<std::uint32_t>(rank)) return std::nullopt;
  return pair / rank_count(shape) * shape.pieces + chunk % shape.pieces;
}

}  // namespace

std::uint32_t logical_chunks(const Shape& shape) {
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
    case Collective::reduce:
    case Collective::broadcast:
      return shape.pieces;
    case Collective::all_gather:
    case Collective::gather:
    case Collective::reduce_scatter:
    case Collective::scatter:
      return rank_count(shape) * shape.pieces;
    case Collective::all_to_all:
      return rank_count(shape) * rank_count(shape) * shape.pieces;
  }
  return 0;
}

Index input_index(const Shape& shape, Rank rank, std::uint32_t chunk) {
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
    case Collective::reduce:
    case Collective::reduce_scatter:
      return chunk;
    case Collective::broadcast:
    case Collective::scatter:
      return at_root(shape, rank, chunk);
    case Collective::all_gather:
    case Collective::gather:
      return own_part(shape, rank, chunk);
    case Collective::all_to_all:
      return sent_part(shape, rank, chunk);
  }
  return std::nullopt;
}

Index output_index(const Shape& shape, Rank rank, std::uint32_t chunk) {
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
    case Collective::broadcast:
    case Collective::all_gather:
      return chunk;
    case Collective::reduce:
    case Collective::gather:
      return at_root(shape, rank, chunk);
    case Collective::reduce_scatter:
    case Collective::scatter:
      return own_part(shape, rank, chunk);
    case Collective::all_to_all:
      return received_part(shape, rank, chunk);
  }
  return std::nullopt;
}

std::uint32_t input_chunks(const Shape& shape, Rank rank) {
  switch (shape.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      return rank == shape.root ? logical_chunks(shape) : 0;
    case Collective::all_gather:
    case Collective::gather:
      return shape.pieces;
    case Collective::all_to_all:
      return rank_count(shape) * shape.pieces;
    default:
      return logical_chunks(shape);
  }
}

std::uint32_t output_chunks(const Shape& shape, Rank rank) {
  switch (shape.collective) {
    case Collective::reduce:
    case Collective::gather:
      return rank == shape.root ? logical_chunks(shape) : 0;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return shape.pieces;
    case Collective::all_to_all:
      return rank_count(shape) * shape.pieces;
    default:
      return logical_chunks(shape);
  }
}

std::uint32_t chunk_of_output(const Shape& shape, Rank rank, std::uint32_t index) {
  switch (shape.collective) {
    case Collective::reduce_scatter:
    case Collective::scatter:
      return static_cast<std::uint32_t>(rank) * shape.pieces + index;
    case Collective::all_to_all:
      return (index / shape.pieces * rank_count(shape) + static_cast<std::uint32_t>(rank)) * shape.pieces + index % shape.pieces;
    default:
      return index;
  }
}

std::uint32_t chunk_of_input(const Shape& shape, Rank rank, std::uint32_t index) {
  switch (shape.collective) {
    case Collective::all_gather:
    case Collective::gather:
      return static_cast<std::uint32_t>(rank) * shape.pieces + index;
    case Collective::all_to_all:
      return static_cast<std::uint32_t>(rank) * rank_count(shape) * shape.pieces + index;
    default:
      return index;
  }
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::reduce_scatter ||
         collective == Collective::barrier;
}

Rank owner_of(const Shape& shape, std::uint32_t chunk) {
  switch (shape.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      return shape.root;
    case Collective::all_gather:
    case Collective::gather:
      return static_cast<Rank>(chunk / shape.pieces);
    case Collective::all_to_all:
      return static_cast<Rank>(chunk / (rank_count(shape) * shape.pieces));
    default:
      return -1;
  }
}

}  // namespace seto
