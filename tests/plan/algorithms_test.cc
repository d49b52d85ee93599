// Every algorithm, plain and lowered, for 1 to 17 ranks, every root, in place on all, none and some ranks, one to three tiers.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "algorithms/algorithm.h"
#include "algorithms/holders.h"
#include "src/engine/lowering.h"
#include "src/plan/chunk_map.h"
#include "src/plan/cost.h"
#include "src/plan/verify.h"
#include "tests/support/seed.h"
#include "tests/support/uneven_tiers.h"
#include "transports/geometry.h"

namespace seto {
namespace {

struct Variant {
  const char* name;
  InPlace (*of)(Rank rank);
};
constexpr Variant kVariants[] = {
    {"none", [](Rank) { return InPlace::no; }},
    {"all", [](Rank) { return InPlace::yes; }},
    {"some", [](Rank rank) { return rank % 3 == 1 ? InPlace::yes : InPlace::no; }},
};

std::vector<Tiers> tierings(int ranks) {
  std::vector<Tiers> all = {Tiers::flat(ranks)};
  for (const int per_node : {2, 3, 4}) {
    if (ranks % per_node != 0 || ranks == per_node) continue;
    std::vector<Home> two(static_cast<std::size_t>(ranks));
    std::vector<Home> three(two.size());
    for (std::size_t r = 0; r < two.size(); ++r) {
      two[r].node = static_cast<std::uint32_t>(r) / static_cast<std::uint32_t>(per_node);
      three[r] = {two[r].node, two[r].node / 2};
    }
    all.push_back(Tiers::of(two));
    if (ranks % (2 * per_node) == 0 && ranks > 2 * per_node) all.push_back(Tiers::of(three));
  }
  if (ranks >= 3 && ranks <= 5) {  // sites of one rank each, whose links differ
    all.push_back(made_up_tiers(ranks, ranks, ranks).value());
    std::vector<PortRates> rates;
    for (int site = 0; site < ranks; ++site) rates.push_back({1.0 + site, 2.0 * ranks - site});
    all.back().take_rates(std::move(rates));
  }
  // Sites of three hosts, of one rank and of two.
  if (ranks == 6 || ranks == 9) all.push_back(made_up_tiers(ranks, ranks, ranks / 3).value());
  if (ranks == 12) all.push_back(made_up_tiers(ranks, 6, 2).value());
  if (ranks == 12) {  // numbered across the nodes, not node by node
    std::vector<Home> striped(12);
    for (std::uint32_t r = 0; r < 12; ++r) striped[r] = {r % 4, r % 2};
    all.push_back(Tiers::of(striped));
  }
  return all;
}

bool rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

Plan lowered(const Plan& plan, const std::vector<InPlace>& in_place, LoweringRules rules) {
  Plan result{plan.name, plan.shape, {}};
  for (const Program& program : plan.programs)
    result.programs.push_back(lower(program, plan.shape, in_place[static_cast<std::size_t>(program.rank)], rules));
  return result;
}

// Transports have room for no other streams, and refuse them as malformed input of a peer.
void expect_streams_exist(const Plan& plan) {
  for (const Program& program : plan.programs)
    for (const Channel& channel : program.channels) {
      ASSERT_LT(channel.port, ports_of(plan.shape.ranks));
      ASSERT_LE(channel.group, kMostGroups);
    }
}

void check(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, const Variant& variant) {
  SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(shape.collective)) + " ranks " +
               std::to_string(shape.ranks) + " root " + std::to_string(shape.root) + " tiers " + std::to_string(tiers.count()) +
               " in place " + variant.name + " coded tiers " + std::to_string(shape.coded_tiers));
  std::vector<InPlace> in_place;
  for (Rank rank = 0; rank < shape.ranks; ++rank)
    in_place.push_back(shape.collective == Collective::all_to_all ? InPlace::no : variant.of(rank));
  const Plan plan = build_plan(algorithm, shape, tiers, in_place);
  expect_streams_exist(plan);
  VerifyRequest request;
  request.in_place = in_place;
  if (shape.codec != 0) {
    request.max_encodings = algorithm.encodings(shape, tiers) - 1;
    EXPECT_NE(std::string(verify(plan, request).status().text()).find("was encoded too often"), std::string::npos);
    ++request.max_encodings;
  }
  const Result<Outcome> strict = verify(plan, request);
  ASSERT_TRUE(strict.ok()) << strict.status().text();
  for (const bool folds : {false, true}) {
    request.chains = folds ? Chains::one_sum : Chains::separate;
    request.capacity = 1;
    request.order = StepOrder::readiness;
    request.places_keep_bytes = true;
    const Result<Outcome> plain = verify(plan, request);
    ASSERT_TRUE(plain.ok()) << plain.status().text();
    const Plan fused = lowered(plan, in_place, {folds ? LoweringRules::Chains::fold : LoweringRules::Chains::keep});
    request.places_keep_bytes = false;
    const Result<Outcome> any_order = verify(fused, request);
    ASSERT_TRUE(any_order.ok()) << "lowered: " << any_order.status().text();
    EXPECT_EQ(any_order.value(), plain.value()) << "lowering moved a rounding";
    request.capacity = 2;
    request.order = StepOrder::skewed;
    const Result<Outcome> skewed = verify(fused, request);
    ASSERT_TRUE(skewed.ok()) << "lowered, skewed: " << skewed.status().text();
    if (shape.codec == 0) continue;
    // Even with separate residuals in each rank's first encoding, all ranks get the same bits.
    request.residuals = true;
    const Result<Outcome> indebted = verify(fused, request);
    ASSERT_TRUE(indebted.ok()) << "with residuals: " << indebted.status().text();
    EXPECT_NE(indebted.value(), skewed.value()) << "no rank adds a residual";
    request.residuals = false;
  }
}

#ifdef SETO_SANITIZED
int uneven_rounds(int) { return 2; }
#else
int uneven_rounds(int ranks) { return ranks > 12 ? 5 : 8; }
#endif

// The ranks of a site differ little as the root of a spread: of many ranks some stand for all.
int root_step(const Algorithm& algorithm, int ranks) { return algorithm.name == "spread" && ranks > 8 ? 1 + ranks / 4 : 1; }

class EveryAlgorithm : public ::testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, IsRightPlainAndLowered) {
  const int ranks = GetParam();
  int checked = 0;
  for (const Tiers& tiers : tierings(ranks))
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, 0, 1, Finish::none};
      shape.pieces = algorithm.pieces(shape, tiers);
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      for (shape.root = 0; shape.root < (rooted(shape.collective) ? ranks : 1); shape.root += root_step(algorithm, ranks))
        for (const Variant& variant : kVariants) {
          shape.pieces = algorithm.pieces(shape, tiers);
          for (const Finish finish : {Finish::none, Finish::scale_contributions, Finish::divide_result}) {
            if (finish != Finish::none && (shape.collective > Collective::reduce || shape.root > 1)) continue;
            shape.finish = finish;
            check(algorithm, shape, tiers, variant);
            ++checked;
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
    }
  RecordProperty("checked", checked);
}

// Every algorithm that supports a codec, on all the tiers where it does: each rank ends with the same bits, encoded as often as
// the table states, and forwarded bytes are those that were received.
TEST_P(EveryAlgorithm, EncodesAsOftenAsStated) {
  const int ranks = GetParam();
  for (const Tiers& tiers : tierings(ranks))
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, ranks / 2, 1, Finish::none, 1, 0};
      shape.pieces = algorithm.pieces(shape, tiers);
      for (unsigned coded = 1; coded < 1U << tiers.count(); ++coded) {
        shape.coded_tiers = static_cast<std::uint8_t>(coded);
        if (!algorithm.refuses(shape, tiers).empty() || algorithm.encodings(shape, tiers) == 0 || ranks == 1) continue;
        for (const Variant& variant : kVariants)
          for (const Finish finish : {Finish::none, Finish::scale_contributions, Finish::divide_result}) {
            shape.finish = finish;
            check(algorithm, shape, tiers, variant);
            if (::testing::Test::HasFatalFailure()) return;
          }
      }
    }
}

// Nodes and sites of random sizes: roots, each variant of in place, and messages between the widest members coded.
TEST_P(EveryAlgorithm, WorksOverUnevenNodesAndSites) {
  const int ranks = GetParam();
  std::mt19937_64 random(seto::testing::chosen_seed() + static_cast<std::uint64_t>(ranks));
  for (int round = 0; round < uneven_rounds(ranks); ++round) {
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    SCOPED_TRACE("nodes of " + support::text_of(homes));
    for (const Algorithm& algorithm : algorithms()) {
      if (!support::follows_tiers(algorithm.name)) continue;
      Shape shape{algorithm.collective, ranks, 0, 1, Finish::none};
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      shape.pieces = algorithm.pieces(shape, tiers);
      if (reduces(shape.collective)) shape.finish = static_cast<Finish>(random() % 3);
      for (shape.root = 0; shape.root < (rooted(shape.collective) ? ranks : 1); shape.root += root_step(algorithm, ranks)) {
        shape.pieces = algorithm.pieces(shape, tiers);
        for (const Variant& variant : kVariants) check(algorithm, shape, tiers, variant);
      }
      shape.root = static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks));
      shape.pieces = algorithm.pieces(shape, tiers);
      shape.codec = 1;
      shape.coded_tiers = static_cast<std::uint8_t>(1U << (tiers.count() - 1));
      if (algorithm.encodings(shape, tiers) > 0)
        for (const Variant& variant : kVariants) check(algorithm, shape, tiers, variant);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

#ifdef SETO_SANITIZED
constexpr int kLargeRounds = 1;
#else
constexpr int kLargeRounds = 8;
#endif

// The same for up to 64 ranks: one root, one variant and one codec of each algorithm over each placing.
TEST(UnevenTiers, OfUpTo64RanksHavePlansThatAreRight) {
  std::mt19937_64 random(seto::testing::chosen_seed() + 64);
  for (int round = 0; round < kLargeRounds; ++round) {
    const int ranks = round == 0 ? 64 : 18 + static_cast<int>(random() % 47);
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    SCOPED_TRACE("nodes of " + support::text_of(homes));
    for (const Algorithm& algorithm : algorithms()) {
      if (!support::follows_tiers(algorithm.name)) continue;
      Shape shape{algorithm.collective, ranks, static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks)), 1, Finish::none};
      if (reduces(shape.collective)) shape.finish = static_cast<Finish>(random() % 3);
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      shape.pieces = algorithm.pieces(shape, tiers);
      shape.codec = static_cast<std::uint8_t>(random() % 2);
      shape.coded_tiers = shape.codec == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(1U << (tiers.count() - 1));
      if (shape.codec != 0 && algorithm.encodings(shape, tiers) == 0) shape.codec = shape.coded_tiers = 0;
      check(algorithm, shape, tiers, kVariants[random() % std::size(kVariants)]);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// The time to build a rank's program and to prove a plan grows with its steps and with the chunks that they touch.
TEST(UnevenTiers, OfManyRanksHaveShortPrograms) {
  std::vector<Home> homes;
  const std::uint32_t hosts_of_site[] = {2, 3, 4};  // of 8 ranks, but the last hosts of the first two sites have 4
  std::uint32_t node = 0;
  for (std::uint32_t site = 0; site < 3; ++site)
    for (std::uint32_t host = 0; host < hosts_of_site[site]; ++host, ++node)
      homes.insert(homes.end(), site < 2 && host + 1 == hosts_of_site[site] ? 4 : 8, Home{node, site});
  const Tiers tiers = Tiers::of(homes);
  ASSERT_EQ(tiers.count(), 3);
  ASSERT_FALSE(tiers.uniform());
  for (const Algorithm& algorithm : algorithms()) {
    if (!support::follows_tiers(algorithm.name)) continue;
    Shape shape{algorithm.collective, 64, 17, 1, Finish::none};
    shape.pieces = algorithm.pieces(shape, tiers);
    const Plan plan = build_plan(algorithm, shape, tiers, {});
    const Plan whole = lowered(plan, std::vector<InPlace>(64, InPlace::no), {});
    const Result<Outcome> outcome = verify(whole, {});
    EXPECT_TRUE(outcome.ok()) << outcome.status().text();
    std::size_t steps = 0;  // of one rank
    double parts = 0;       // that the operands of its steps have together
    for (const Program& program : whole.programs) {
      const StepCost cost = cost_of(program);
      steps = std::max(steps, program.steps.size());
      parts = std::max(parts, double(cost.read + cost.written + cost.received + cost.sent) / shape.pieces);
    }
    // In an all_to_all every part is different, and crosses each tier on its own.
    const unsigned crossings = algorithm.collective == Collective::all_to_all ? 3 : 1;
    EXPECT_LE(steps, crossings * 2U * 64) << name_of(algorithm.collective);
    EXPECT_LE(parts, crossings * 4.0 * 64) << name_of(algorithm.collective);
  }
}

// Slots have few multicast groups and ports for each sender: plans over uneven tiers must not need more.
TEST(UnevenTiers, NeedNoMoreGroupsAndPortsThanSlotsHave) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int round = 0; round < 60; ++round) {
    const int ranks = 3 + static_cast<int>(random() % 46);
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    SCOPED_TRACE("nodes of " + support::text_of(homes));
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, ranks / 2, 1, Finish::none};
      if (!support::follows_tiers(algorithm.name) || !algorithm.refuses(shape, tiers).empty()) continue;
      shape.pieces = algorithm.pieces(shape, tiers);
      for (const Program& program : build_plan(algorithm, shape, tiers, {}).programs)
        for (const Channel& channel : program.channels) {
          ASSERT_LE(channel.group, kMostGroups) << name_of(algorithm.collective);
          ASSERT_LT(channel.port, ports_of(ranks)) << name_of(algorithm.collective);
        }
    }
  }
}

// Messages that stay within a node or a site are never coded.
TEST(Codecs, AreUsedBetweenSitesAlone) {
  const Tiers tiers = Tiers::of({{0, 0}, {0, 0}, {0, 0}, {1, 0}, {2, 1}, {2, 1}, {3, 2}});
  ASSERT_EQ(tiers.count(), 3);
  for (const Algorithm& algorithm : algorithms()) {
    Shape shape{algorithm.collective, tiers.ranks(), 4, 1, Finish::none, 1, 4};
    if (!algorithm.refuses(shape, tiers).empty() || algorithm.encodings(shape, tiers) == 0) continue;
    EXPECT_TRUE(support::follows_tiers(algorithm.name));
    shape.pieces = algorithm.pieces(shape, tiers);
    for (const Program& program : build_plan(algorithm, shape, tiers, {}).programs)
      for (const Channel& channel : program.channels)
        for (const Rank receiver : program.receivers_of(channel))
          EXPECT_EQ(channel.coded, tiers.kind(tiers.between(channel.sender, receiver)) == TierKind::world);
  }
}

// No rank carries much more than its share of what crosses a border, whatever the sizes are.
TEST(Holders, ShareEvenly) {
  std::mt19937_64 random(seto::testing::chosen_seed());
  for (int round = 0; round < 200; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 39);
    const std::vector<Home> homes = support::random_homes(ranks, random);
    const Tiers tiers = support::with_random_rates(Tiers::of(homes), random);
    if (tiers.count() == 1) continue;
    SCOPED_TRACE("nodes of " + support::text_of(homes));
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather}) {
      Shape shape{collective, ranks, 0, Holders::pieces_for(tiers), Finish::none};
      if (collective == Collective::all_reduce) shape.pieces = Holders::total(tiers, Holders::chunks_of_sums(tiers));
      const Holders holders(shape, tiers);
      const double chunks = logical_chunks(shape);
      for (Rank rank = 0; rank < ranks; ++rank)
        for (int tier = 0; tier + 1 < tiers.count(); ++tier) {
          double held = 0;
          for (std::uint32_t chunk = 0; chunk < logical_chunks(shape); ++chunk)
            held += holders.holder(rank, tier, chunk) == rank ? 1 : 0;
          const double share = chunks / tiers.neighbourhood_of(rank).block[static_cast<std::size_t>(tier)];
          // Evenly spaced places come out of an interval in their right number, or one more. One tier further inside, the
          // interval of a rank takes from outside, and from the other ranks of its block: their own chunks, and on both sides
          // of its own block those that they hold.
          const double surplus = tier + 2 == tiers.count() ? 1 : 4;
          EXPECT_LT(held, share + surplus) << "rank " << rank << " tier " << tier;
          EXPECT_LE(held, share * 1.25) << "rank " << rank << " tier " << tier;
        }
    }
  }
}

// Two ranks compute the same sum and each rounds it: the results are equal without residuals and differ with them.
TEST(Codecs, WithResidualsDifferIfTwoRanksEncodeTheSame) {
  const Shape shape{Collective::all_reduce, 2, 0, 1, Finish::none, 1, 2};
  Plan plan{"both round", shape, {}};
  const std::vector<InPlace> none(2, InPlace::no);
  for (Rank rank = 0; rank < 2; ++rank) {
    Builder builder(shape, rank, InPlace::no);
    builder.at_tier(0);  // not coded
    builder.exchange(0, 1, builder.everything());
    builder.next_round();
    builder.at_tier(1);
    for (Rank each = 0; each < 2; ++each) builder.round(each, builder.everything());
    plan.programs.push_back(std::move(builder).build());
  }
  const Plan fused = lowered(plan, none, {});
  VerifyRequest request;
  request.places_keep_bytes = false;
  EXPECT_TRUE(verify(fused, request).ok()) << verify(fused, request).status().text();
  request.residuals = true;
  EXPECT_NE(std::string(verify(fused, request).status().text()).find("differs in its bits"), std::string::npos);
}

// Its ranks would later send from memory what arrived coded.
TEST(Codecs, AreRefusedIfEncodedBytesWouldHaveToBeKept) {
  const Algorithm& algorithm = *find_algorithm("halving_doubling", Collective::all_reduce);
  const Shape shape{Collective::all_reduce, 4, 0, 4, Finish::none, 1, 1};
  EXPECT_EQ(algorithm.encodings(shape, Tiers::flat(4)), 0U);
  EXPECT_NE(refusal_of(algorithm, shape, Tiers::flat(4)), "");
  // If the plan is built nevertheless, its owner encodes the bytes twice and gets different ones.
  const std::vector<InPlace> none(4, InPlace::no);
  const Plan fused = lowered(build_plan(algorithm, shape, Tiers::flat(4), none), none, {});
  VerifyRequest request;
  request.max_encodings = 9;
  request.places_keep_bytes = false;
  EXPECT_NE(std::string(verify(fused, request).status().text()).find("differs in its bits"), std::string::npos);
}

TEST(Codecs, AreRefusedIfValuesWouldBeEncodedTooOften) {
  const Algorithm& ring = *find_algorithm("ring", Collective::all_reduce);
  const Shape two{Collective::all_reduce, 2, 0, 2, Finish::none, 1, 1};
  const Shape four{Collective::all_reduce, 4, 0, 4, Finish::none, 1, 1};
  EXPECT_EQ(refusal_of(ring, two, Tiers::flat(2)), "");
  EXPECT_EQ(refusal_of(ring, four, Tiers::flat(4)), "encodes a value up to 4 times, more than 2");
  EXPECT_EQ(refusal_of(ring, four, Tiers::flat(4), 4), "") << "asked for";
}

TEST(Codecs, AreRefusedByFlatAlgorithmsWhereTiersDiffer) {
  std::vector<Home> homes(4);
  for (std::uint32_t r = 0; r < 4; ++r) homes[r].node = r / 2;
  const Tiers tiers = Tiers::of(homes);
  const Shape widest{Collective::all_reduce, 4, 0, 4, Finish::none, 1, 2};
  EXPECT_NE(refusal_of(*find_algorithm("two_shot", Collective::all_reduce), widest, tiers), "");
  EXPECT_EQ(refusal_of(*find_algorithm("hierarchical", Collective::all_reduce), widest, tiers), "");
  const Shape all{Collective::all_reduce, 4, 0, 4, Finish::none, 1, 3};
  EXPECT_EQ(refusal_of(*find_algorithm("two_shot", Collective::all_reduce), all, tiers), "");
  EXPECT_NE(refusal_of(*find_algorithm("hierarchical", Collective::all_reduce), all, tiers), "");
}

#ifdef SETO_SANITIZED
constexpr int kMostRanks = 9;
#else
constexpr int kMostRanks = 17;
#endif

INSTANTIATE_TEST_SUITE_P(Ranks, EveryAlgorithm, ::testing::Range(1, kMostRanks + 1));

}  // namespace
}  // namespace seto
