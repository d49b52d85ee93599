#include <array>
#include <bit>

#include "algorithms/algorithm.h"
#include "algorithms/direct.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/hierarchical.h"
#include "algorithms/pairwise.h"
#include "algorithms/ring.h"
#include "algorithms/tree.h"

namespace seto {
namespace {

std::string never(const Shape&, const Tiers&) { return {}; }

std::string unless_alone(const Shape& shape, const Tiers&) { return shape.ranks > 1 ? "" : "there is one rank"; }

std::string unless_tiered(const Shape&, const Tiers& tiers) {
  if (!tiers.uniform()) return "nodes or sites differ in size";
  return tiers.count() > 1 ? "" : "there is one tier";
}

// For those that add in one step what all members of a group have.
std::string beyond_a_step(int members) {
  if (static_cast<std::uint32_t>(members) <= kMostSources) return {};
  return "adds " + std::to_string(members) + " parts in one step, the engine at most " + std::to_string(kMostSources);
}

std::string if_too_many(const Shape& shape, const Tiers&) { return beyond_a_step(shape.ranks); }

std::string if_alone_or_too_many(const Shape& shape, const Tiers& tiers) {
  return shape.ranks > 1 ? if_too_many(shape, tiers) : unless_alone(shape, tiers);
}

std::string unless_tiered_by_few(const Shape& shape, const Tiers& tiers) {
  std::string refused = unless_tiered(shape, tiers);
  for (int tier = 0; tier < tiers.count() && refused.empty(); ++tier) refused = beyond_a_step(tiers.size(tier));
  return refused;
}

std::uint32_t one(const Shape&) { return 1; }
std::uint32_t two(const Shape&) { return 2; }
std::uint32_t one_each(const Shape& shape) { return static_cast<std::uint32_t>(shape.ranks); }

// ---- encodings ----

std::uint32_t log_down(int ranks) { return static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(ranks)) - 1); }
std::uint32_t hops(const Shape& shape) { return static_cast<std::uint32_t>(shape.ranks) - 1; }

bool on_all_tiers(const Shape& shape, const Tiers& tiers) { return shape.coded_tiers == (1U << tiers.count()) - 1; }
// What comes from a wider tier is handed on within a narrower one as it was decoded.
bool on_the_widest_alone(const Shape& shape, const Tiers& tiers) { return shape.coded_tiers == 1U << (tiers.count() - 1); }

// Those that know of no tiers code all messages or none.
template <std::uint32_t (*Encodings)(const Shape&)>
std::uint32_t flat(const Shape& shape, const Tiers& tiers) {
  return on_all_tiers(shape, tiers) ? Encodings(shape) : 0;
}
template <std::uint32_t Count>
std::uint32_t tiered(const Shape& shape, const Tiers& tiers) {
  return on_the_widest_alone(shape, tiers) ? Count : 0;
}

std::uint32_t uncoded(const Shape&, const Tiers&) { return 0; }
std::uint32_t once(const Shape&) { return 1; }
std::uint32_t twice(const Shape&) { return 2; }
std::uint32_t each_hop(const Shape& shape) { return hops(shape); }
std::uint32_t each_hop_and_result(const Shape& shape) { return hops(shape) + 1; }
std::uint32_t each_level(const Shape& shape) { return static_cast<std::uint32_t>(tree_depth(shape.ranks)); }
std::uint32_t each_level_and_result(const Shape& shape) { return each_level(shape) + 1; }
// A distance is travelled in its powers of two: most for the largest that has all of them.
std::uint32_t each_halving(const Shape& shape) { return log_down(shape.ranks); }
std::uint32_t each_doubling(const Shape& shape) {
  const std::uint32_t core = log_down(shape.ranks);
  return std::has_single_bit(static_cast<unsigned>(shape.ranks)) ? core
                                                                 : core + 2;  // in from those beyond the core, and out to them
}

using C = Collective;

// In the order in which `seto explain` prints them. Nothing registers itself.
constexpr std::array kAlgorithms = {
    Algorithm{"one_shot", C::all_reduce, if_too_many, flat<once>, one, build_one_shot_all_reduce},
    Algorithm{"two_shot", C::all_reduce, if_alone_or_too_many, flat<twice>, one_each, build_two_shot_all_reduce},
    Algorithm{"ring", C::all_reduce, unless_alone, flat<each_hop_and_result>, one_each, build_ring_all_reduce},
    Algorithm{"double_tree", C::all_reduce, unless_alone, flat<each_level_and_result>, two, build_double_tree_all_reduce},
    Algorithm{"halving_doubling", C::all_reduce, unless_alone, uncoded, one_each, build_halving_doubling_all_reduce},
    Algorithm{"recursive_doubling", C::all_reduce, unless_alone, flat<each_doubling>, one, build_recursive_doubling_all_reduce},
    Algorithm{"hierarchical", C::all_reduce, unless_tiered_by_few, tiered<2>, one_each, build_hierarchical_all_reduce},
    Algorithm{"direct", C::all_gather, never, uncoded, one, build_direct_all_gather},
    Algorithm{"ring", C::all_gather, unless_alone, uncoded, one, build_ring_all_gather},
    Algorithm{"doubling", C::all_gather, unless_alone, uncoded, one, build_doubling_all_gather},
    Algorithm{"hierarchical", C::all_gather, unless_tiered, uncoded, one, build_hierarchical_all_gather},
    Algorithm{"direct", C::reduce_scatter, if_too_many, flat<once>, one, build_direct_reduce_scatter},
    Algorithm{"ring", C::reduce_scatter, unless_alone, flat<each_hop>, one, build_ring_reduce_scatter},
    Algorithm{"halving", C::reduce_scatter, unless_alone, flat<each_halving>, one, build_halving_reduce_scatter},
    Algorithm{"hierarchical", C::reduce_scatter, unless_tiered_by_few, tiered<1>, one, build_hierarchical_reduce_scatter},
    Algorithm{"direct", C::broadcast, never, uncoded, one, build_direct_broadcast},
    Algorithm{"tree", C::broadcast, unless_alone, uncoded, one, build_tree_broadcast},
    Algorithm{"ring", C::broadcast, unless_alone, uncoded, one, build_ring_broadcast},
    Algorithm{"hierarchical", C::broadcast, unless_tiered, uncoded, one, build_hierarchical_broadcast},
    Algorithm{"direct", C::reduce, if_too_many, flat<once>, one, build_direct_reduce},
    Algorithm{"tree", C::reduce, unless_alone, flat<each_level>, one, build_tree_reduce},
    Algorithm{"ring", C::reduce, unless_alone, flat<each_hop>, one, build_ring_reduce},
    Algorithm{"hierarchical", C::reduce, unless_tiered_by_few, tiered<1>, one, build_hierarchical_reduce},
    Algorithm{"direct", C::all_to_all, never, uncoded, one, build_direct_all_to_all},
    Algorithm{"pairwise", C::all_to_all, unless_alone, uncoded, one, build_pairwise_all_to_all},
    Algorithm{"direct", C::gather, never, uncoded, one, build_direct_gather},
    Algorithm{"direct", C::scatter, never, uncoded, one, build_direct_scatter},
    Algorithm{"one_shot", C::barrier, if_too_many, uncoded, one, build_one_shot_all_reduce},
    Algorithm{"recursive_doubling", C::barrier, unless_alone, uncoded, one, build_recursive_doubling_all_reduce},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

std::string refusal_of(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, std::uint32_t most_encodings) {
  std::string refused = algorithm.refuses(shape, tiers);
  if (!refused.empty() || shape.codec == 0) return refused;
  const std::uint32_t encodings = algorithm.encodings(shape, tiers);
  if (encodings == 0) return "its messages cannot be coded, or not on these tiers alone";
  if (encodings <= most_encodings) return {};
  return "encodes a value up to " + std::to_string(encodings) + " times, more than " + std::to_string(most_encodings);
}

const Algorithm* find_algorithm(std::string_view name, Collective collective) {
  for (const Algorithm& algorithm : kAlgorithms)
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  return nullptr;
}

Program build_program(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, Rank rank, InPlace in_place) {
  Builder builder(shape, rank, in_place);
  algorithm.build(builder, tiers);
  return std::move(builder).build();
}

Plan build_plan(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, std::span<const InPlace> in_place) {
  Plan plan;
  plan.name = algorithm.name;
  plan.shape = shape;
  for (Rank rank = 0; rank < shape.ranks; ++rank)
    plan.programs.push_back(
        build_program(algorithm, shape, tiers, rank, in_place.empty() ? InPlace::no : in_place[static_cast<std::size_t>(rank)]));
  return plan;
}

}  // namespace seto
