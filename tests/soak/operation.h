#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/soak/element.h"
#include "tests/soak/random.h"

namespace seto::soak {

enum class Kind : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  bcast,
  reduce_scatter,
  all_gather,
  all_to_all,
  gather,
  scatter,
  barrier,
  all_to_allv,
  all_gatherv,
  reduce_scatterv,
  shift,  // every rank sends to one rank and receives from another, in a group
  pair,   // every second rank sends to the next one, alone
};
inline constexpr int kKinds = 15;
const char* name_of(Kind kind);

// One call, the same on every rank of its communicator.
struct Operation {
  Kind kind = Kind::barrier;
  Fold fold = Fold::sum;
  int type = 0;
  int root = 0;
  std::size_t count = 0;
  std::uint64_t key = 0;

  [[nodiscard]] std::string text() const;
};
Operation drawn(Random& random, int ranks, std::size_t most_bytes);

// Elements [at, at + count) of a rank's result are those of rank `source` from `from` on, or the reduction of all ranks there.
inline constexpr int kAllRanks = -1;
struct Piece {
  std::size_t at;
  std::size_t count;
  int source;
  std::size_t from;
};

// One rank's part in a call, in elements. In place, the input begins at input_at and the output at output_at of one area.
struct Layout {
  std::size_t input = 0;
  std::size_t output = 0;
  bool in_place = false;
  std::size_t input_at = 0;
  std::size_t output_at = 0;
  std::vector<Piece> pieces;
};
Layout layout_of(const Operation& operation, int rank, int ranks);

// The counts and displacements of the uneven forms.
struct Parts {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> at;
  std::size_t extent = 0;
  bool gaps = false;  // false: the parts are contiguous
};
// For all_to_allv: the elements that a rank sends to each rank, and receives from each.
Parts sent_parts(const Operation& operation, int rank, int ranks);
Parts received_parts(const Operation& operation, int rank, int ranks);
// For the other two: all ranks have the same counts; in all_gatherv each rank chooses its displacements.
Parts common_parts(const Operation& operation, int rank, int ranks);

}  // namespace seto::soak
