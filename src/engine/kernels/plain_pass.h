#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/types.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/numbers.h"
#include "src/engine/kernels/operations.h"
#include "src/engine/kernels/pass.h"
#include "src/engine/kernels/portable.h"
#include "src/engine/kernels/threads.h"

// Passes over plain numbers, with the bits of src/device/reduce.h. The block has whole warps.
namespace seto::kernels {

// Addresses of the operands of a pass with few of them, in registers.
template <int kCount, class Byte>
struct Places {
  Byte* at[kCount];

  SETO_KERNEL Places(Byte* const* begins, std::uint64_t offset) {
    SETO_UNROLL for (int k = 0; k < kCount; ++k) at[k] = begins[k] + offset;
  }
  [[nodiscard]] SETO_KERNEL Places behind(std::uint32_t count, std::uint32_t size) const {
    Places moved(*this);
    SETO_UNROLL for (int k = 0; k < kCount; ++k) moved.at[k] += std::uint64_t{count} * size;
    return moved;
  }
};

// ---- One to four plain sources, one or two targets

template <class Number, class Op, int kSources>
SETO_KERNEL Words fold_words(const Words (&raw)[kSources]) {
  if constexpr (kSources == 1) {
    return raw[0];
  } else {
    using Vector = Wide<typename Number::Storage>;
    Words result{};
    SETO_UNROLL for (int i = 0; i < Vector::kElements; ++i) {
      auto value = Number::widen(Vector::get(raw[0], i));
      SETO_UNROLL for (int k = 1; k < kSources; ++k) value = Op::fold(value, Number::widen(Vector::get(raw[k], i)));
      Vector::put(result, i, Number::narrow(value));
    }
    return result;
  }
}

// `kWhole`: every lane has a vector in every row.
template <class Number, class Op, int kSources, int kTargets, int kRows, bool kWhole>
SETO_KERNEL void few_tile(const Places<kSources, const std::byte>& from, const Places<kTargets, std::byte>& to,
                          std::uint32_t left) {
  constexpr std::uint32_t kRow = kLanes * sizeof(Words);
  // A register that is set on some paths only would be in use from the begin of the kernel on.
  Words raw[kRows][kSources]{};
  SETO_UNROLL for (int row = 0; row < kRows; ++row) {
    if (!kWhole && static_cast<std::uint32_t>(row) * kLanes >= left) continue;
    SETO_UNROLL for (int k = 0; k < kSources; ++k) raw[row][k] = load<Words>(from.at[k] + static_cast<std::uint32_t>(row) * kRow);
  }
  SETO_UNROLL for (int row = 0; row < kRows; ++row) {
    if (!kWhole && static_cast<std::uint32_t>(row) * kLanes >= left) continue;
    const Words result = fold_words<Number, Op, kSources>(raw[row]);
    SETO_UNROLL for (int k = 0; k < kTargets; ++k) store(to.at[k] + static_cast<std::uint32_t>(row) * kRow, result);
  }
}

// Works on whole groups of kTiles adjacent tiles, from a group on. Returns the first group that it has not done.
template <class Number, class Op, int kSources, int kTargets, int kRows, int kTiles>
SETO_KERNEL std::uint32_t few_groups(const Places<kSources, const std::byte>& from, const Places<kTargets, std::byte>& to,
                                     std::uint32_t group, std::uint32_t end, std::uint32_t warps) {
  constexpr std::uint32_t kTileSize = kRows * kLanes * sizeof(Words);
  SETO_NO_UNROLL for (; group < end; group += warps) {
    const std::uint32_t number = not_foreseen(group);
    const auto mine = from.behind(number, kTiles * kTileSize);
    const auto into = to.behind(number, kTiles * kTileSize);
    SETO_UNROLL for (int tile = 0; tile < kTiles; ++tile) {
      few_tile<Number, Op, kSources, kTargets, kRows, true>(mine.behind(static_cast<std::uint32_t>(tile), kTileSize),
                                                            into.behind(static_cast<std::uint32_t>(tile), kTileSize), 0);
    }
  }
  return group;
}

// Tiles of a group: the more, the less of a loop are its addresses. The last tiles, too few for a group of each warp, go one by
// one.
template <class S, int kRows>
inline constexpr int kTogether = sizeof(S) < 4 ? 1
                                 : kRows < 4   ? 4
                                               : 2;

template <class Number, class Op, int kSources, int kTargets, int kRows, int kTiles>
SETO_KERNEL void few_operands(const Pass& pass, const Split& split) {
  constexpr std::uint32_t kTile = kRows * kLanes;
  const Here thread = here();
  const std::uint64_t first = split.head + thread.lane * sizeof(Words);
  const Places<kSources, const std::byte> from(in_shared(pass.sources), first);
  const Places<kTargets, std::byte> to(in_shared(pass.targets), first);
  const auto tiles = static_cast<std::uint32_t>(split.vectors / kTile);
  std::uint32_t tile = thread.warp;
  if constexpr (kTiles > 1) {
    const std::uint32_t groups = tiles / (kTiles * thread.warps) * thread.warps;
    few_groups<Number, Op, kSources, kTargets, kRows, kTiles>(from, to, thread.warp, groups, thread.warps);
    tile += groups * kTiles;
  }
  tile = few_groups<Number, Op, kSources, kTargets, kRows, 1>(from, to, tile, tiles, thread.warps);
  const auto rest = static_cast<std::uint32_t>(split.vectors % kTile);
  if (tile == tiles && thread.lane < rest) {
    few_tile<Number, Op, kSources, kTargets, kRows, false>(from.behind(tile, kTile * sizeof(Words)),
                                                           to.behind(tile, kTile * sizeof(Words)), rest - thread.lane);
  }
}

// ---- Any operands

// Vectors are adjacent in memory, except for a gap: the edges of a pass are the elements that vectors of 16 bytes leave.
struct Edges {
  std::uint64_t before;  // vectors before the gap
  std::uint64_t gap;     // bytes
};

// How a term of a fold is made.
template <class Number>
struct Terms {
  using Accumulator = typename Number::Accumulator;

  SETO_KERNEL explicit Terms(const Pass& pass) : mask_(pass.scaled) {
    if (mask_ != 0) scalar_ = load<Accumulator>(static_cast<const std::byte*>(pass.scalar));
  }

  [[nodiscard]] SETO_KERNEL bool scales(std::uint32_t k) const { return (mask_ >> k & 1) != 0; }
  [[nodiscard]] SETO_KERNEL Accumulator scaled(typename Number::Storage raw) const {
    return Number::round(multiply(Number::widen(raw), scalar_));
  }

 private:
  std::uint64_t mask_;
  Accumulator scalar_{};
};

template <class Number>
SETO_KERNEL typename Number::Storage finish(typename Number::Accumulator value, std::uint32_t divisor) {
  if constexpr (std::is_integral_v<typename Number::Accumulator>) {
    if (divisor > 1) value = divide(value, divisor);
  }
  return Number::narrow(value);
}

// The memory of one tile: `valid` has a bit for each row.
template <class Vector, int kRows>
struct TilePlace {
  std::uint64_t offset[kRows];
  std::uint32_t valid = 0;

  SETO_KERNEL TilePlace(const Tiles<kRows>& tiles, std::uint64_t head, const Edges& edges) {
    SETO_UNROLL for (int row = 0; row < kRows; ++row) {
      const std::uint64_t vector = tiles.first() + static_cast<std::uint32_t>(row) * kLanes;
      offset[row] = head + vector * sizeof(typename Vector::Raw) + (vector < edges.before ? 0 : edges.gap);
      if (tiles.has(row)) valid |= 1U << row;
    }
  }

  SETO_KERNEL void read(const std::byte* source, typename Vector::Raw (&raw)[kRows]) const {
    SETO_UNROLL for (int row = 0; row < kRows; ++row) {
      if ((valid >> row & 1) != 0) raw[row] = load<typename Vector::Raw>(source + offset[row]);
    }
  }
  SETO_KERNEL void write(std::byte* target, const typename Vector::Raw (&raw)[kRows]) const {
    SETO_UNROLL for (int row = 0; row < kRows; ++row) {
      if ((valid >> row & 1) != 0) store(target + offset[row], raw[row]);
    }
  }
};

// The values of a tile, folded over the sources that were read.
template <class Number, class Vector, int kRows>
struct TileValues {
  using Raws = typename Vector::Raw[kRows];
  typename Number::Accumulator value[kRows][Vector::kElements];

  template <class How>
  SETO_KERNEL void take(const Raws& raw, const Terms<Number>& terms, bool scales, How how) {
    if (scales) return take_terms(raw, how, [&terms](auto number) { return terms.scaled(number); });
    take_terms(raw, how, [](auto number) { return Number::widen(number); });
  }

  SETO_KERNEL void finish_to(Raws& raw, std::uint32_t divisor) const {
    SETO_UNROLL for (int row = 0; row < kRows; ++row) {
      raw[row] = {};
      SETO_UNROLL for (int i = 0; i < Vector::kElements; ++i) {
        Vector::put(raw[row], i, finish<Number>(value[row][i], divisor));
      }
    }
  }

 private:
  template <class How, class Term>
  SETO_KERNEL void take_terms(const Raws& raw, How how, Term term) {
    SETO_UNROLL for (int row = 0; row < kRows; ++row) {
      SETO_UNROLL for (int i = 0; i < Vector::kElements; ++i) {
        value[row][i] = how(value[row][i], term(Vector::get(raw[row], i)));
      }
    }
  }
};

struct Replace {
  template <class T>
  SETO_KERNEL T operator()(T, T term) const {
    return term;
  }
};

template <class Op>
struct Join {
  template <class T>
  SETO_KERNEL T operator()(T value, T term) const {
    return Op::fold(value, term);
  }
};

// The next source is under way while one is folded.
template <class Number, class Op, class Vector, int kRows>
SETO_KERNEL void any_tile(const Pass& pass, const Terms<Number>& terms, const TilePlace<Vector, kRows>& place) {
  using Raw = typename Vector::Raw;
  const std::byte* const* const sources = in_shared(pass.sources);
  TileValues<Number, Vector, kRows> values{};
  Raw now[kRows]{};
  Raw later[kRows]{};
  place.read(sources[0], now);
  if (pass.source_count > 1) place.read(sources[1], later);
  values.take(now, terms, terms.scales(0), Replace{});
  SETO_NO_UNROLL for (std::uint32_t k = 1; k < pass.source_count; ++k) {
    SETO_UNROLL for (int row = 0; row < kRows; ++row) { now[row] = later[row]; }
    if (k + 1 < pass.source_count) place.read(sources[k + 1], later);
    values.take(now, terms, terms.scales(k), Join<Op>{});
  }
  values.finish_to(now, pass.divisor);
  SETO_NO_UNROLL for (std::uint32_t k = 0; k < pass.target_count; ++k) place.write(pass.target(k), now);
}

// The warp from which tiles are dealt.
enum class Deal : std::uint8_t { from_first, from_last };

template <class Number, class Op, class Vector, int kRows, Deal kDeal>
SETO_KERNEL void any_operands(const Pass& pass, std::uint64_t head, std::uint64_t vectors, const Edges& edges) {
  const Terms<Number> terms(pass);
  const Here thread = here();
  const std::uint32_t first = kDeal == Deal::from_first ? thread.warp : thread.warps - 1 - thread.warp;
  SETO_NO_UNROLL for (Tiles<kRows> tiles{vectors, thread, first}; tiles.any(); tiles.next()) {
    any_tile<Number, Op>(pass, terms, TilePlace<Vector, kRows>(tiles, head, edges));
  }
}

// ---- The passes

SETO_KERNEL constexpr Edges no_gap() { return {~std::uint64_t{0}, 0}; }

// Loads of one thread that are under way at a time must cover the latency of memory: a few for each thread of a block do.
template <class S>
inline constexpr int kAnyRows = sizeof(S) >= 4 ? 4 : static_cast<int>(sizeof(S));
inline constexpr int kEdgeRows = 4;
inline constexpr int kMoveRows = 8;
inline constexpr int kMoveTiles = 2;
inline constexpr int kAnyMoveRows = 4;

// The elements that vectors leave are for the last warps, which have the fewest tiles.
template <class Number, class Op>
SETO_KERNEL void edges(const Pass& pass, const Split& split, std::uint64_t width) {
  constexpr std::uint64_t kSize = sizeof(typename Number::Storage);
  const std::uint64_t count = (split.head + split.tail) / kSize;
  const Edges gap{split.head / kSize, split.vectors * width};
  any_operands<Number, Op, Single<typename Number::Storage>, kEdgeRows, Deal::from_last>(pass, 0, count, gap);
}

template <class Word>
SETO_KERNEL void move_words(const Pass& pass, std::uint64_t size) {
  const Split split = split_of(pass, size, sizeof(Word));
  any_operands<Whole<Word>, Sum, Single<Word>, kAnyMoveRows, Deal::from_first>(pass, split.head, split.vectors, no_gap());
  if constexpr (sizeof(Word) > 1) edges<Whole<std::uint8_t>, Sum>(pass, split, sizeof(Word));
}

SETO_KERNEL void move_vectors(const Pass& pass, std::uint64_t size) {
  using Byte = Whole<std::uint8_t>;
  const Split split = split_of(pass, size, sizeof(Words));
  if (pass.target_count == 1)
    few_operands<Byte, Sum, 1, 1, kMoveRows, kMoveTiles>(pass, split);
  else if (pass.target_count == 2)
    few_operands<Byte, Sum, 1, 2, kMoveRows, kMoveTiles>(pass, split);
  else
    any_operands<Whole<std::uint32_t>, Sum, Wide<std::uint32_t>, kAnyMoveRows, Deal::from_first>(pass, split.head, split.vectors,
                                                                                                 no_gap());
  edges<Byte, Sum>(pass, split, sizeof(Words));
}

// The widest words for which the addresses agree.
SETO_KERNEL void move_bytes(const Pass& pass, std::uint64_t size) {
  const std::uintptr_t differences = differences_of(pass);
  if (differences % 16 == 0) return move_vectors(pass, size);
  if (differences % 8 == 0) return move_words<std::uint64_t>(pass, size);
  if (differences % 4 == 0) return move_words<std::uint32_t>(pass, size);
  if (differences % 2 == 0) return move_words<std::uint16_t>(pass, size);
  move_words<std::uint8_t>(pass, size);
}

// Copies the source of a pass that moves. All bits are kept.
SETO_KERNEL void move_pass(const Pass& pass, std::uint32_t element_size) { move_bytes(pass, pass.count * element_size); }

// The 8-bit floats compute so much for each number that only the most frequent form has code of its own.
template <class Number>
inline constexpr bool kComputesMuch = sizeof(typename Number::Accumulator) >= 4 * sizeof(typename Number::Storage);

// Rows of a tile: the fewer, the more elements a vector has, because compilers unpack several at a time.
template <class Number, int kSources>
inline constexpr int kFewRows = sizeof(typename Number::Storage) >= 4   ? (kSources < 3 ? 4 : 2)
                                : sizeof(typename Number::Storage) == 2 ? (kSources < 3 ? 4 : 2)
                                                                        : (kSources < 4 ? 2 : 1);

template <class Number, class Op, int kSources>
SETO_KERNEL void reduce_few(const Pass& pass, const Split& split) {
  constexpr int kRows = kFewRows<Number, kSources>;
  constexpr int kTiles = kTogether<typename Number::Storage, kRows>;
  if (pass.target_count == 1)
    few_operands<Number, Op, kSources, 1, kRows, kTiles>(pass, split);
  else
    few_operands<Number, Op, kSources, 2, kRows, kTiles>(pass, split);
}

// False if there are other than a few plain operands.
template <class Number, class Op>
SETO_KERNEL bool reduced_few(const Pass& pass, const Split& split) {
  if (pass.scaled != 0 || pass.divisor > 1 || pass.target_count > 2) return false;
  if (pass.source_count == 2 && (!kComputesMuch<Number> || std::is_same_v<Op, Sum>)) {
    reduce_few<Number, Op, 2>(pass, split);
    return true;
  }
  if constexpr (!kComputesMuch<Number>) {
    if (pass.source_count == 3) reduce_few<Number, Op, 3>(pass, split);
    if (pass.source_count == 4) reduce_few<Number, Op, 4>(pass, split);
    return pass.source_count == 3 || pass.source_count == 4;
  }
  return false;
}

template <class Number, class Op>
SETO_KERNEL void reduce_vectors(const Pass& pass, const Split& split) {
  using S = typename Number::Storage;
  if (reduced_few<Number, Op>(pass, split)) return;
  any_operands<Number, Op, Wide<S>, kAnyRows<S>, Deal::from_first>(pass, split.head, split.vectors, no_gap());
}

template <class Number, class Op>
SETO_KERNEL void reduce_with(const Pass& pass) {
  const Split split = split_of(pass, pass.count * sizeof(typename Number::Storage), sizeof(Words));
  if (split.vectors != 0) reduce_vectors<Number, Op>(pass, split);
  edges<Number, Op>(pass, split, sizeof(Words));
}

// One plain source keeps its bits, too. A pass that moves may also be given to this function: a kernel that calls it alone has
// the code that moves once.
template <class Number>
SETO_KERNEL void reduce_pass(ReduceOp op, const Pass& pass) {
  if (pass.moves || (pass.source_count == 1 && pass.scaled == 0 && pass.divisor <= 1))
    return move_pass(pass, static_cast<std::uint32_t>(sizeof(typename Number::Storage)));
  switch (op) {
    case ReduceOp::prod:
      return reduce_with<Number, Product>(pass);
    case ReduceOp::max:
      return reduce_with<Number, Maximum>(pass);
    case ReduceOp::min:
      return reduce_with<Number, Minimum>(pass);
    case ReduceOp::bit_and:
      if constexpr (std::is_integral_v<typename Number::Accumulator>) return reduce_with<Number, BitAnd>(pass);
      break;
    case ReduceOp::bit_or:
      if constexpr (std::is_integral_v<typename Number::Accumulator>) return reduce_with<Number, BitOr>(pass);
      break;
    case ReduceOp::bit_xor:
      if constexpr (std::is_integral_v<typename Number::Accumulator>) return reduce_with<Number, BitXor>(pass);
      break;
    default:
      break;
  }
  reduce_with<Number, Sum>(pass);
}

}  // namespace seto::kernels
