#include "tests/soak/operation.h"

#include <bit>
#include <cmath>

namespace seto::soak {
namespace {

// Salts, so that values drawn from one key are independent.
enum Salt : std::uint64_t { kInPlace = 1, kCounts, kSendGaps, kReceiveGaps };

std::uint64_t own(const Operation& operation, Salt salt, int rank) {
  return mixed(mixed(operation.key, salt), static_cast<std::uint64_t>(rank));
}

std::size_t uneven(const Operation& operation, int from, int to) {
  const std::uint64_t drawn = mixed(own(operation, kCounts, from), static_cast<std::uint64_t>(to));
  return drawn % 8 == 0 ? 0 : (drawn >> 8) % (operation.count + 1);
}

// Decides whether there are gaps between parts, and how wide they are.
void place(Parts& parts, std::uint64_t key) {
  parts.gaps = key % 2 == 0;
  for (std::size_t part = 0; part < parts.counts.size(); ++part) {
    if (parts.gaps) parts.extent += mixed(key, part) % 4;
    parts.at.push_back(parts.extent);
    parts.extent += parts.counts[part];
  }
}

bool may_be_in_place(Kind kind, bool is_root) {
  switch (kind) {
    case Kind::all_reduce:
    case Kind::broadcast:
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::all_gatherv:
    case Kind::reduce_scatterv:
      return true;
    case Kind::reduce:
    case Kind::gather:
    case Kind::scatter:
      return is_root;
    default:
      return false;
  }
}

void lay_uneven(const Operation& operation, int rank, int ranks, Layout& layout) {
  const auto own_part = static_cast<std::size_t>(rank);
  if (operation.kind == Kind::all_to_allv) {
    const Parts received = received_parts(operation, rank, ranks);
    layout.input = sent_parts(operation, rank, ranks).extent;
    layout.output = received.extent;
    for (int from = 0; from < ranks; ++from) {
      const auto part = static_cast<std::size_t>(from);
      const Parts sent = sent_parts(operation, from, ranks);
      layout.pieces.push_back({received.at[part], received.counts[part], from, sent.at[own_part]});
    }
    return;
  }
  const Parts parts = common_parts(operation, rank, ranks);
  if (operation.kind == Kind::all_gatherv) {
    layout.input = parts.counts[own_part];
    layout.output = parts.extent;
    layout.input_at = parts.at[own_part];
    for (int from = 0; from < ranks; ++from) {
      const auto part = static_cast<std::size_t>(from);
      layout.pieces.push_back({parts.at[part], parts.counts[part], from, 0});
    }
    return;
  }
  layout.input = parts.extent;
  layout.output = parts.counts[own_part];
  layout.output_at = parts.at[own_part];
  layout.pieces.push_back({0, layout.output, kAllRanks, parts.at[own_part]});
}

void lay_rooted(const Operation& operation, int rank, int ranks, Layout& layout) {
  const std::size_t n = operation.count;
  const std::size_t all = n * static_cast<std::size_t>(ranks);
  const std::size_t mine = n * static_cast<std::size_t>(rank);
  const bool is_root = rank == operation.root;
  switch (operation.kind) {
    case Kind::reduce:
      layout.input = n;
      layout.output = is_root ? n : 0;
      if (is_root) layout.pieces.push_back({0, n, kAllRanks, 0});
      return;
    case Kind::gather:
      layout.input = n;
      layout.output = is_root ? all : 0;
      layout.input_at = mine;
      for (int from = 0; is_root && from < ranks; ++from)
        layout.pieces.push_back({n * static_cast<std::size_t>(from), n, from, 0});
      return;
    case Kind::scatter:
      layout.input = is_root ? all : 0;
      layout.output = n;
      layout.output_at = mine;
      layout.pieces.push_back({0, n, operation.root, mine});
      return;
    default:  // broadcasts; the one in place uses setoBcast
      layout.input = is_root ? n : 0;
      layout.output = n;
      layout.pieces.push_back({0, n, operation.root, 0});
  }
}

void lay_even(const Operation& operation, int rank, int ranks, Layout& layout) {
  const std::size_t n = operation.count;
  const std::size_t all = n * static_cast<std::size_t>(ranks);
  const std::size_t mine = n * static_cast<std::size_t>(rank);
  switch (operation.kind) {
    case Kind::all_reduce:
      layout.input = layout.output = n;
      layout.pieces.push_back({0, n, kAllRanks, 0});
      return;
    case Kind::reduce_scatter:
      layout.input = all;
      layout.output = n;
      layout.output_at = mine;
      layout.pieces.push_back({0, n, kAllRanks, mine});
      return;
    case Kind::all_gather:
      layout.input = n;
      layout.output = all;
      layout.input_at = mine;
      for (int from = 0; from < ranks; ++from) layout.pieces.push_back({n * static_cast<std::size_t>(from), n, from, 0});
      return;
    case Kind::all_to_all:
      layout.input = layout.output = all;
      for (int from = 0; from < ranks; ++from) layout.pieces.push_back({n * static_cast<std::size_t>(from), n, from, mine});
      return;
    case Kind::shift:
      layout.input = layout.output = n;
      layout.pieces.push_back({0, n, (rank - operation.root + ranks) % ranks, 0});
      return;
    case Kind::pair:
      if (rank % 2 == 0 && rank + 1 < ranks) layout.input = n;
      if (rank % 2 == 0) return;
      layout.output = n;
      layout.pieces.push_back({0, n, rank - 1, 0});
      return;
    default:
      return;
  }
}

}  // namespace

const char* name_of(Kind kind) {
  static constexpr const char* kNames[kKinds] = {"all_reduce",  "reduce",      "broadcast",       "bcast",   "reduce_scatter",
                                                 "all_gather",  "all_to_all",  "gather",          "scatter", "barrier",
                                                 "all_to_allv", "all_gatherv", "reduce_scatterv", "shift",   "pair"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Operation::text() const {
  return std::string(name_of(kind)) + " of " + std::to_string(count) + ", type " + std::to_string(type_of(type).code) +
         ", fold " + std::to_string(static_cast<int>(fold)) + ", root " + std::to_string(root);
}

Operation drawn(Random& random, int ranks, std::size_t most_bytes) {
  Operation one;
  one.kind = static_cast<Kind>(random.below(kKinds));
  one.fold = static_cast<Fold>(random.below(kFolds));
  one.type = random.index(kTypes);
  one.root = random.index(ranks);
  const double share = random.share();
  const auto bytes = static_cast<std::size_t>(std::pow(static_cast<double>(most_bytes), share * std::sqrt(share)));
  one.count = random.one_in(12) ? 0 : bytes / type_of(one.type).size + random.below(3);
  one.key = random.next();
  // A float is divided before it is added, which is exact only for a power of two.
  const bool halves = std::has_single_bit(static_cast<unsigned>(ranks));
  if (one.fold == Fold::average && type_of(one.type).floating && !halves) one.fold = Fold::sum;
  return one;
}

Parts sent_parts(const Operation& operation, int rank, int ranks) {
  Parts parts;
  for (int to = 0; to < ranks; ++to) parts.counts.push_back(uneven(operation, rank, to));
  place(parts, own(operation, kSendGaps, rank));
  return parts;
}

Parts received_parts(const Operation& operation, int rank, int ranks) {
  Parts parts;
  for (int from = 0; from < ranks; ++from) parts.counts.push_back(uneven(operation, from, rank));
  place(parts, own(operation, kReceiveGaps, rank));
  return parts;
}

Parts common_parts(const Operation& operation, int rank, int ranks) {
  Parts parts;
  for (int one = 0; one < ranks; ++one) parts.counts.push_back(uneven(operation, 0, one));
  place(parts, operation.kind == Kind::all_gatherv ? own(operation, kReceiveGaps, rank) : 1);
  return parts;
}

Layout layout_of(const Operation& operation, int rank, int ranks) {
  Layout layout;
  switch (operation.kind) {
    case Kind::all_to_allv:
    case Kind::all_gatherv:
    case Kind::reduce_scatterv:
      lay_uneven(operation, rank, ranks, layout);
      break;
    case Kind::reduce:
    case Kind::gather:
    case Kind::scatter:
    case Kind::broadcast:
    case Kind::bcast:
      lay_rooted(operation, rank, ranks, layout);
      break;
    default:
      lay_even(operation, rank, ranks, layout);
  }
  const bool chosen = own(operation, kInPlace, rank) % 3 == 0 && may_be_in_place(operation.kind, rank == operation.root);
  layout.in_place = operation.kind == Kind::bcast || chosen;
  if (!layout.in_place) layout.input_at = layout.output_at = 0;
  return layout;
}

}  // namespace seto::soak
