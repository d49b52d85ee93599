#include <array>
#include <bit>

#include "algorithms/algorithm.h"
#include "algorithms/direct.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/hierarchical.h"
#include "algorithms/hierarchical_all_to_all.h"
#include "algorithms/hierarchical_spread.h"
#include "algorithms/holders.h"
#include "algorithms/host_ring.h"
#include "algorithms/pairwise.h"
#include "algorithms/ring.h"
#include "algorithms/site_ring.h"
#include "algorithms/tree.h"

namespace seto {
namespace {

std::string never(const Shape&, const Tiers&) { return {}; }

std::string unless_alone(const Shape& shape, const Tiers&) { return shape.ranks > 1 ? "" : "there is one rank"; }

std::string unless_tiered(const Shape&, const Tiers& tiers) { return is_tiered(tiers) ? "" : "there is one tier"; }

std::string unless_nested(const Shape&, const Tiers& tiers) { return tiers.count() > 1 ? "" : "there is one tier"; }

std::string unless_round_sites(const Shape&, const Tiers& tiers) { return refuses_site_ring(tiers); }

std::string unless_round_hosts(const Shape&, const Tiers& tiers) { return refuses_host_ring(tiers); }

// For algorithms that add the parts of all members of a group in one step.
std::string beyond_a_step(int members) {
  if (static_cast<std::uint32_t>(members) <= kMostSources) return {};
  return "adds " + std::to_string(members) + " parts in one step, the engine at most " + std::to_string(kMostSources);
}

std::string if_too_many(const Shape& shape, const Tiers&) { return beyond_a_step(shape.ranks); }

std::string if_alone_or_too_many(const Shape& shape, const Tiers& tiers) {
  return shape.ranks > 1 ? if_too_many(shape, tiers) : unless_alone(shape, tiers);
}

// ---- pieces ----

std::uint32_t one(const Shape&, const Tiers&) { return 1; }
std::uint32_t two(const Shape&, const Tiers&) { return 2; }
std::uint32_t one_each(const Shape& shape, const Tiers&) { return static_cast<std::uint32_t>(shape.ranks); }
std::uint32_t held(const Shape&, const Tiers& tiers) { return Holders::pieces_for(tiers); }
std::uint32_t held_of_sums(const Shape&, const Tiers& tiers) { return Holders::total(tiers, Holders::chunks_of_sums(tiers)); }

std::uint32_t held_round_hosts(const Shape&, const Tiers& tiers) { return pieces_of_tiered_parts(tiers, HostPhases::ring); }
std::uint32_t held_of_sums_round_hosts(const Shape&, const Tiers& tiers) {
  return Holders::total(tiers, chunks_of_tiered_sums(tiers, HostPhases::ring));
}

std::uint32_t held_evenly(const Shape&, const Tiers& tiers) { return chunks_of_site_ring(tiers); }

// ---- encodings ----

std::uint32_t log_down(int ranks) { return static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(ranks)) - 1); }
std::uint32_t hops(const Shape& shape) { return static_cast<std::uint32_t>(shape.ranks) - 1; }

bool on_all_tiers(const Shape& shape, const Tiers& tiers) { return shape.coded_tiers == (1U << tiers.count()) - 1; }
// Data from a wider tier is passed on within a narrower one in decoded form.
bool on_the_widest_alone(const Shape& shape, const Tiers& tiers) { return shape.coded_tiers == 1U << (tiers.count() - 1); }

// Algorithms without tiers code either all messages or none.
template <std::uint32_t (*Encodings)(const Shape&)>
std::uint32_t flat(const Shape& shape, const Tiers& tiers) {
  return on_all_tiers(shape, tiers) ? Encodings(shape) : 0;
}
std::uint32_t once_on_the_widest(const Shape& shape, const Tiers& tiers) { return on_the_widest_alone(shape, tiers) ? 1 : 0; }
// A result is encoded in the pass that sends it. Blocks of different sizes have no multicast groups: there it has a target for
// each other member.
bool is_sent_in_a_pass(const Tiers& tiers) {
  return tiers.uniform() || static_cast<std::uint32_t>(tiers.size(tiers.count() - 1)) <= kMostTargets;
}
std::uint32_t contribution_and_result_on_the_widest(const Shape& shape, const Tiers& tiers) {
  return is_sent_in_a_pass(tiers) && on_the_widest_alone(shape, tiers) ? (exchanges_sums(tiers) ? 1 : 2) : 0;
}

// A ring of hosts would encode at each of its hops.
bool codes_between_sites(const Tiers& tiers) { return tiers.widest() == TierKind::world; }
std::uint32_t contribution_and_result_between_sites(const Shape& shape, const Tiers& tiers) {
  return codes_between_sites(tiers) ? contribution_and_result_on_the_widest(shape, tiers) : 0;
}
std::uint32_t once_between_sites(const Shape& shape, const Tiers& tiers) {
  return codes_between_sites(tiers) ? once_on_the_widest(shape, tiers) : 0;
}

std::uint32_t twice_or_once_on_the_widest(const Shape& shape, const Tiers& tiers) {
  return on_the_widest_alone(shape, tiers) && is_tiered(tiers) ? encodings_of_spread_reduce(shape, tiers) : 0;
}

std::uint32_t each_site_on_the_widest(const Shape& shape, const Tiers& tiers) {
  return on_the_widest_alone(shape, tiers) ? static_cast<std::uint32_t>(tiers.size(tiers.count() - 1)) : 0;
}

std::uint32_t uncoded(const Shape&, const Tiers&) { return 0; }
std::uint32_t once(const Shape&) { return 1; }
std::uint32_t twice(const Shape&) { return 2; }
std::uint32_t each_hop(const Shape& shape) { return hops(shape); }
std::uint32_t each_hop_and_result(const Shape& shape) { return hops(shape) + 1; }
std::uint32_t each_level(const Shape& shape) { return static_cast<std::uint32_t>(tree_depth(shape.ranks)); }
std::uint32_t each_level_and_result(const Shape& shape) { return each_level(shape) + 1; }
// A distance is covered in its powers of two: the number of encodings is largest for the largest distance that has all of them.
std::uint32_t each_halving(const Shape& shape) { return log_down(shape.ranks); }
std::uint32_t each_doubling(const Shape& shape) {
  const std::uint32_t core = log_down(shape.ranks);
  return std::has_single_bit(static_cast<unsigned>(shape.ranks))
             ? core
             : core + 2;  // in from the ranks beyond the core, and out to them
}

using C = Collective;

// In the order in which `seto explain` prints them. An algorithm exists only if it has a row here.
constexpr std::array kAlgorithms = {
    Algorithm{"one_shot", C::all_reduce, if_too_many, flat<once>, one, build_one_shot_all_reduce, one_shot_all_reduce_load},
    Algorithm{"two_shot", C::all_reduce, if_alone_or_too_many, flat<twice>, one_each, build_two_shot_all_reduce,
              two_shot_all_reduce_load},
    Algorithm{"ring", C::all_reduce, unless_alone, flat<each_hop_and_result>, one_each, build_ring_all_reduce,
              ring_all_reduce_load},
    Algorithm{"double_tree", C::all_reduce, unless_alone, flat<each_level_and_result>, two, build_double_tree_all_reduce,
              double_tree_all_reduce_load},
    Algorithm{"halving_doubling", C::all_reduce, unless_alone, uncoded, one_each, build_halving_doubling_all_reduce,
              halving_doubling_all_reduce_load},
    Algorithm{"recursive_doubling", C::all_reduce, unless_alone, flat<each_doubling>, one, build_recursive_doubling_all_reduce,
              recursive_doubling_all_reduce_load},
    Algorithm{"hierarchical", C::all_reduce, unless_tiered, contribution_and_result_on_the_widest, held_of_sums,
              build_hierarchical_all_reduce, hierarchical_all_reduce_load},
    Algorithm{"host_ring", C::all_reduce, unless_round_hosts, contribution_and_result_between_sites, held_of_sums_round_hosts,
              build_host_ring_all_reduce, host_ring_all_reduce_load},
    Algorithm{"site_ring", C::all_reduce, unless_round_sites, each_site_on_the_widest, held_evenly, build_site_ring_all_reduce,
              site_ring_all_reduce_load},
    Algorithm{"direct", C::all_gather, never, uncoded, one, build_direct_all_gather, direct_all_gather_load},
    Algorithm{"ring", C::all_gather, unless_alone, uncoded, one, build_ring_all_gather, ring_all_gather_load},
    Algorithm{"doubling", C::all_gather, unless_alone, uncoded, one, build_doubling_all_gather, doubling_all_gather_load},
    Algorithm{"hierarchical", C::all_gather, unless_tiered, uncoded, held, build_hierarchical_all_gather,
              hierarchical_all_gather_load},
    Algorithm{"host_ring", C::all_gather, unless_round_hosts, uncoded, held_round_hosts, build_host_ring_all_gather,
              host_ring_all_gather_load},
    Algorithm{"direct", C::reduce_scatter, if_too_many, flat<once>, one, build_direct_reduce_scatter, direct_reduce_scatter_load},
    Algorithm{"ring", C::reduce_scatter, unless_alone, flat<each_hop>, one, build_ring_reduce_scatter, ring_reduce_scatter_load},
    Algorithm{"halving", C::reduce_scatter, unless_alone, flat<each_halving>, one, build_halving_reduce_scatter,
              halving_reduce_scatter_load},
    Algorithm{"hierarchical", C::reduce_scatter, unless_tiered, once_on_the_widest, held, build_hierarchical_reduce_scatter,
              hierarchical_reduce_scatter_load},
    Algorithm{"host_ring", C::reduce_scatter, unless_round_hosts, once_between_sites, held_round_hosts,
              build_host_ring_reduce_scatter, host_ring_reduce_scatter_load},
    Algorithm{"direct", C::broadcast, never, uncoded, one, build_direct_broadcast, direct_broadcast_load},
    Algorithm{"tree", C::broadcast, unless_alone, uncoded, one, build_tree_broadcast, tree_broadcast_load},
    Algorithm{"ring", C::broadcast, unless_alone, uncoded, one, build_ring_broadcast, ring_broadcast_load},
    Algorithm{"hierarchical", C::broadcast, unless_tiered, uncoded, one, build_hierarchical_broadcast,
              hierarchical_broadcast_load},
    Algorithm{"spread", C::broadcast, unless_tiered, uncoded, chunks_of_spread, build_spread_broadcast, spread_broadcast_load},
    Algorithm{"direct", C::reduce, if_too_many, flat<once>, one, build_direct_reduce, direct_reduce_load},
    Algorithm{"tree", C::reduce, unless_alone, flat<each_level>, one, build_tree_reduce, tree_reduce_load},
    Algorithm{"ring", C::reduce, unless_alone, flat<each_hop>, one, build_ring_reduce, ring_reduce_load},
    Algorithm{"hierarchical", C::reduce, unless_tiered, once_on_the_widest, one, build_hierarchical_reduce,
              hierarchical_reduce_load},
    Algorithm{"spread", C::reduce, unless_tiered, twice_or_once_on_the_widest, chunks_of_spread, build_spread_reduce,
              spread_reduce_load},
    Algorithm{"direct", C::all_to_all, never, uncoded, one, build_direct_all_to_all, direct_all_to_all_load},
    Algorithm{"pairwise", C::all_to_all, unless_alone, uncoded, one, build_pairwise_all_to_all, pairwise_all_to_all_load},
    Algorithm{"hierarchical", C::all_to_all, unless_nested, uncoded, one, build_hierarchical_all_to_all,
              hierarchical_all_to_all_load},
    Algorithm{"direct", C::gather, never, uncoded, one, build_direct_gather, direct_gather_load},
    Algorithm{"direct", C::scatter, never, uncoded, one, build_direct_scatter, direct_scatter_load},
    Algorithm{"one_shot", C::barrier, if_too_many, uncoded, one, build_one_shot_all_reduce, one_shot_barrier_load},
    Algorithm{"recursive_doubling", C::barrier, unless_alone, uncoded, one, build_recursive_doubling_all_reduce,
              recursive_doubling_barrier_load},
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
