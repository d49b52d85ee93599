#include "algorithms/hierarchical_all_to_all.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "algorithms/hierarchy.h"

namespace seto {
namespace {

// The ranks of each member, in order of their numbers, as they lie in the rows.
class SortedMembers {
 public:
  explicit SortedMembers(const Tiers& tiers) : tiers_(tiers) {
    ranks_.resize(static_cast<std::size_t>(tiers.ranks()));
    std::iota(ranks_.begin(), ranks_.end(), 0);
    for (int tier = 0; tier + 1 < tiers.count(); ++tier) {
      std::vector<std::vector<Rank>>& blocks = blocks_.emplace_back();
      for (int block = 0; block < tiers.blocks(tier); ++block) {
        const std::span<const Rank> ranks = tiers.block(tier, block);
        std::vector<Rank>& sorted = blocks.emplace_back(ranks.begin(), ranks.end());
        std::sort(sorted.begin(), sorted.end());
      }
    }
  }

  [[nodiscard]] std::span<const Rank> of(Rank head, int tier) const {
    if (tier == 0) return std::span(ranks_).subspan(static_cast<std::size_t>(head), 1);
    return blocks_[static_cast<std::size_t>(tier) - 1][static_cast<std::size_t>(tiers_.block_of(head, tier - 1))];
  }

 private:
  const Tiers& tiers_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::vector<Rank>>> blocks_;  // by tier and block
};

bool holds(std::span<const Rank> sorted, Rank rank) { return std::binary_search(sorted.begin(), sorted.end(), rank); }

// The statements of one round that concern the built rank. A row is what one rank sends to all others.
class Rows {
 public:
  Rows(Builder& builder, const Tiers& tiers, const SortedMembers& sorted, int round)
      : builder_(builder), tiers_(tiers), sorted_(sorted), round_(round) {}

  void pass_on(Rank row) const { pass_on({row, row, 0}, tiers_.count() - 1, nullptr); }

 private:
  struct Held {
    Rank row;
    Rank holder;
    int hops;  // from the row's rank to the holder
  };

  // The holder passes on what its row has for these ranks of its block; nullptr: for all of them.
  void pass_on(const Held& held, int tier, const std::span<const Rank>* to) const {
    const int block = tiers_.block_of(held.holder, tier);
    if (tiers_.block_of(builder_.rank(), tier) != block) return;
    for (const Rank head : tiers_.members(tier, block)) {
      const std::span<const Rank> member = sorted_.of(head, tier);
      if (held.holder != builder_.rank() && !holds(member, builder_.rank())) continue;
      std::vector<Rank> some;
      if (to != nullptr) std::set_intersection(member.begin(), member.end(), to->begin(), to->end(), std::back_inserter(some));
      const std::span<const Rank> inside = to == nullptr ? member : std::span<const Rank>(some);
      if (!holds(member, held.holder)) {
        hand_over(held, tier, member, inside);
      } else if (tier > 0) {
        pass_on(held, tier - 1, &inside);
      }
    }
  }

  // To another member: its ranks take turns as the carriers of the holders outside it. If it has more ranks than that, each
  // holder has several carriers.
  void hand_over(const Held& held, int tier, std::span<const Rank> member, std::span<const Rank> to) const {
    const std::size_t all = tiers_.block(tier, tiers_.block_of(held.holder, tier)).size();
    const std::size_t outside = all - member.size();
    const auto at = static_cast<std::size_t>(tiers_.position(held.holder, tier));
    const auto before = static_cast<std::size_t>(std::count_if(
        member.begin(), member.end(), [&](Rank rank) { return static_cast<std::size_t>(tiers_.position(rank, tier)) < at; }));
    const std::size_t first = (at - before) * member.size() / outside;
    const std::size_t carriers = std::max<std::size_t>(1, (at - before + 1) * member.size() / outside - first);
    for (std::size_t i = 0; i < carriers; ++i) {
      const std::size_t begin = to.size() * i / carriers;
      move(held, tier, member[first + i], to.subspan(begin, to.size() * (i + 1) / carriers - begin));
    }
  }

  void move(const Held& held, int tier, Rank carrier, std::span<const Rank> to) const {
    if (held.hops < round_) {
      if (tier > 0) pass_on({held.row, carrier, held.hops + 1}, tier - 1, &to);
      return;
    }
    if (held.holder != builder_.rank() && carrier != builder_.rank()) return;
    std::vector<Range> ranges;
    for (const Rank rank : to) append(ranges, builder_.part_of(held.row, rank).first);
    builder_.at_tier(tier);
    for (const Range range : ranges) builder_.copy(held.holder, carrier, range);
  }

  Builder& builder_;
  const Tiers& tiers_;
  const SortedMembers& sorted_;
  int round_;
};

}  // namespace

// In the first round each rank receives from the one before it first, as it sends to the one after it first. Later rounds have
// rows of several ranks between the same two holders, which both must visit in one order.
void build_hierarchical_all_to_all(Builder& builder, const Tiers& tiers) {
  const int ranks = tiers.ranks();
  const SortedMembers sorted(tiers);
  for (int round = 0; round < tiers.count(); ++round) {
    const Rows rows(builder, tiers, sorted, round);
    for (int i = 0; i < ranks; ++i) rows.pass_on(round == 0 ? (builder.rank() - i + ranks) % ranks : i);
    builder.next_round();
  }
}

namespace {

// The most messages to one member for each row, because a member larger than what is outside has several carriers for a holder.
double most_carriers(const Tiers& tiers, const Neighbourhood& around, int tier) {
  double most = 1;
  const auto t = static_cast<std::size_t>(tier);
  for (const Neighbourhood& one : tiers.neighbourhoods()) {
    if (one.block[t] != around.block[t] || one.block[t] == one.member(tier)) continue;
    most = std::max(most, std::ceil(static_cast<double>(one.member(tier)) / (one.block[t] - one.member(tier))));
  }
  return most;
}

// The load of a rank with this neighbourhood. On each tier it holds the rest of `rows` rows: its own and those that came in over
// wider tiers. Memory: every part that is sent is read and written to a slot, and every one that comes in is copied out of a
// slot, to the output or to be passed on. Of a row that is passed on, the carrier's own part is then copied to its output (2).
PlanLoad all_to_all_load_of(const Tiers& tiers, const Neighbourhood& around) {
  PlanLoad plan;
  plan.rank = {.memory = 2, .steps = 1};
  double rows = 1;
  for (int tier = tiers.count() - 1; tier >= 0; --tier) {
    const auto t = static_cast<std::size_t>(tier);
    const double member = around.member(tier);
    const double outside = around.block[t] - member;
    if (outside == 0) continue;
    const double partners = outside >= member ? std::ceil(outside / member) : outside / member;
    const double come_in = rows * partners * member;
    const double sent = rows * outside;
    const double rows_in = rows * std::max(1.0, partners);
    // Parts lie side by side if the ranks of a member are numbered one after another.
    const double runs = tier == 0 || tiers.consecutive(tier - 1) ? 1 : member;
    const double carriers = around.members[t] - 1.0 + most_carriers(tiers, around, tier) - 1;
    const double out = rows * carriers;
    plan.tiers[t] = {.hops = 1, .wire = std::max(sent, come_in), .messages = runs * (out + rows_in)};
    const bool is_passed_on = std::min(member, outside) > 1;  // else each message is one part, for the carrier itself
    const double kept = is_passed_on ? rows_in : 0;
    plan.rank.memory += 2 * (sent + come_in) + 2 * kept;
    const bool is_mutual = tiers.uniform() && tier < 2;  // a rank carries for those that carry for it
    if (tiers.kind(tier) != TierKind::node)
      plan.rank.peers += std::min(outside, is_mutual ? carriers : carriers + std::ceil(partners));
    plan.rank.steps += runs * (out + rows_in) + kept;
    if (is_passed_on) rows *= 1 + partners;
  }
  return plan;
}

}  // namespace

PlanLoad hierarchical_all_to_all_load(const Tiers& tiers) {
  PlanLoad plan = load_of_busiest(tiers, all_to_all_load_of);
  plan.rank.peers = std::min(plan.rank.peers, ranks_elsewhere(tiers));
  plan.tiers[static_cast<std::size_t>(tiers.count() - 1)].shared = shared_by_members(tiers, [&](std::size_t i) {
    const double inside = tiers.ranks_of_member(i);
    const double parts = inside * (tiers.ranks() - inside);  // each rank here and each rank elsewhere have one for each other
    return PortRates{parts, parts};
  });
  return plan;
}

}  // namespace seto
