// Every algorithm, plain and lowered, for 1 to 17 ranks, every root, in place on all, none and some ranks, one to three tiers.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/plan/verify.h"

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
  if (ranks == 12) {  // numbered across the nodes, not along them
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

void check(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, const Variant& variant) {
  SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(shape.collective)) + " ranks " +
               std::to_string(shape.ranks) + " root " + std::to_string(shape.root) + " tiers " + std::to_string(tiers.count()) +
               " in place " + variant.name + " coded tiers " + std::to_string(shape.coded_tiers));
  std::vector<InPlace> in_place;
  for (Rank rank = 0; rank < shape.ranks; ++rank)
    in_place.push_back(shape.collective == Collective::all_to_all ? InPlace::no : variant.of(rank));
  const Plan plan = build_plan(algorithm, shape, tiers, in_place);
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
    // With residuals of each rank's own in what it encodes first: the same bits on all ranks still.
    request.residuals = true;
    const Result<Outcome> indebted = verify(fused, request);
    ASSERT_TRUE(indebted.ok()) << "with residuals: " << indebted.status().text();
    EXPECT_NE(indebted.value(), skewed.value()) << "no rank adds a residual";
    request.residuals = false;
  }
}

class EveryAlgorithm : public testing::TestWithParam<int> {};

TEST_P(EveryAlgorithm, IsRightPlainAndLowered) {
  const int ranks = GetParam();
  int checked = 0;
  for (const Tiers& tiers : tierings(ranks))
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, 0, 1, Finish::none};
      shape.pieces = algorithm.pieces(shape);
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      for (shape.root = 0; shape.root < (rooted(shape.collective) ? ranks : 1); ++shape.root)
        for (const Variant& variant : kVariants) {
          for (const Finish finish : {Finish::none, Finish::scale_contributions, Finish::divide_result}) {
            if (finish != Finish::none && (shape.collective > Collective::reduce || shape.root > 1)) continue;
            shape.finish = finish;
            check(algorithm, shape, tiers, variant);
            ++checked;
            if (testing::Test::HasFatalFailure()) return;
          }
        }
    }
  RecordProperty("checked", checked);
}

// Every algorithm that takes a codec, on all the tiers where it does: each rank ends with the same bits, encoded as often as the
// table says, and what a rank hands on are the bytes that it got.
TEST_P(EveryAlgorithm, EncodesAsOftenAsItSays) {
  const int ranks = GetParam();
  for (const Tiers& tiers : tierings(ranks))
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, ranks / 2, 1, Finish::none, 1, 0};
      shape.pieces = algorithm.pieces(shape);
      for (unsigned coded = 1; coded < 1U << tiers.count(); ++coded) {
        shape.coded_tiers = static_cast<std::uint8_t>(coded);
        if (!algorithm.refuses(shape, tiers).empty() || algorithm.encodings(shape, tiers) == 0 || ranks == 1) continue;
        for (const Variant& variant : kVariants)
          for (const Finish finish : {Finish::none, Finish::scale_contributions, Finish::divide_result}) {
            shape.finish = finish;
            check(algorithm, shape, tiers, variant);
            if (testing::Test::HasFatalFailure()) return;
          }
      }
    }
}

// Two ranks that make the same sum and round it each: alike without debts, not with them.
TEST(Codecs, WithDebtsDifferWhereTwoRanksEncodeTheSame) {
  const Shape shape{Collective::all_reduce, 2, 0, 1, Finish::none, 1, 2};
  Plan plan{"both round", shape, {}};
  const std::vector<InPlace> none(2, InPlace::no);
  for (Rank rank = 0; rank < 2; ++rank) {
    Builder builder(shape, rank, InPlace::no);
    builder.at_tier(0);  // exactly
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

// Its ranks would send from memory, later, what came coded.
TEST(Codecs, AreRefusedWhereBytesWouldHaveToBeKept) {
  const Algorithm& algorithm = *find_algorithm("halving_doubling", Collective::all_reduce);
  const Shape shape{Collective::all_reduce, 4, 0, 4, Finish::none, 1, 1};
  EXPECT_EQ(algorithm.encodings(shape, Tiers::flat(4)), 0U);
  EXPECT_NE(refusal_of(algorithm, shape, Tiers::flat(4)), "");
  // Built all the same, its owner encodes its bytes twice, and not to the same ones
  const std::vector<InPlace> none(4, InPlace::no);
  const Plan fused = lowered(build_plan(algorithm, shape, Tiers::flat(4), none), none, {});
  VerifyRequest request;
  request.max_encodings = 9;
  request.places_keep_bytes = false;
  EXPECT_NE(std::string(verify(fused, request).status().text()).find("differs in its bits"), std::string::npos);
}

TEST(Codecs, AreRefusedWhereValuesWouldBeEncodedTooOften) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, EveryAlgorithm, testing::Range(1, kMostRanks + 1));

}  // namespace
}  // namespace seto
