// A test of the verifier: it damages plans of every algorithm, plain and lowered, and runs the mutants that the verifier accepts.
// A mutant that changes a result, moves a rounding or gets stuck in any tried interleaving must not be accepted.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "algorithms/algorithm.h"
#include "src/engine/lowering.h"
#include "src/plan/channel_index.h"
#include "src/plan/chunk_map.h"
#include "src/plan/text.h"
#include "src/plan/verify.h"
#include "src/plan/verify_values.h"
#include "tests/support/mutate.h"
#include "tests/support/plan_oracle.h"
#include "tests/support/uneven_tiers.h"

namespace seto {
namespace {

using support::mutations;
using support::OracleElement;
using support::OracleRun;

#ifdef SETO_SANITIZED
constexpr int kMutantsOfEach = 1;
constexpr int kInterleavings = 4;
constexpr int kVariants = 1;  // of three, in turn
#else
constexpr int kMutantsOfEach = 2;
constexpr int kInterleavings = 12;
constexpr int kVariants = 3;
#endif
constexpr std::uint64_t kSeed = 20240611;

std::string_view name_of_kind(std::size_t kind) { return kind < mutations().size() ? mutations()[kind].name : "lie about place"; }

enum Fate : std::size_t { kStructure, kValues, kProgress, kBits, kSurvived, kFates };

// A right plan, and the request to verify and run it with.
struct Subject {
  std::string text;
  Plan plan;
  VerifyRequest request;
  bool lowered = false;
  Outcome outcome;
  std::vector<std::vector<OracleElement>> expected;
};

struct Tally {
  std::array<int, kFates> fates{};
  int escaped = 0;           // survived and seen to go wrong; only the first of a kind is printed
  int killed_and_tried = 0;  // a sample of the killed mutants that could be run
  int killed_and_wrong = 0;  // of those, seen to go wrong
};

Fate judge(const Subject& subject, const Plan& mutant, const VerifyRequest& request) {
  if (!check_structure(mutant).ok()) return kStructure;
  const Result<ChannelIndex> index = join_channels(mutant);
  if (!index.ok()) return kStructure;
  const Result<Outcome> outcome = verify_values(mutant, index.value(), request);
  if (!outcome.ok()) return kValues;
  if (!verify_progress(mutant, index.value(), request).ok()) return kProgress;
  // A lowered program must round like its plain one. A plain program defines the right result, as long as all ranks agree.
  return subject.lowered && outcome.value() != subject.outcome ? kBits : kSurvived;
}

std::vector<Tiers> tierings(int ranks) {
  std::vector<Tiers> all = {Tiers::flat(ranks)};
  if (ranks == 5) all.push_back(Tiers::of({{0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}}));          // 3 2
  if (ranks == 4) all.push_back(Tiers::of({{0, 0}, {0, 0}, {0, 0}, {1, 1}}));                  // 3 | 1
  if (ranks == 6) all.push_back(Tiers::of({{0, 0}, {0, 0}, {1, 0}, {2, 1}, {2, 1}, {3, 2}}));  // 2 1 | 2 | 1
  if (ranks == 6) all.back().take_rates({{1, 1}, {2, 2}, {4, 4}});
  if (ranks != 4 && ranks != 6) return all;
  std::vector<Home> homes(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < homes.size(); ++r) homes[r].node = static_cast<std::uint32_t>(r / 2);
  all.push_back(Tiers::of(homes));
  return all;
}

class Adversary {
 public:
  explicit Adversary(int ranks) : random_(kSeed + static_cast<std::uint64_t>(ranks)) {}

  void attack(const Algorithm& algorithm, const Shape& shape, const Tiers& tiers, int variant) {
    Subject subject;
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      const bool in_place = shape.collective != Collective::all_to_all && (variant == 1 || (variant == 2 && rank % 2 == 1));
      subject.request.in_place.push_back(in_place ? InPlace::yes : InPlace::no);
    }
    if (shape.codec != 0) subject.request.max_encodings = algorithm.encodings(shape, tiers);
    subject.plan = build_plan(algorithm, shape, tiers, subject.request.in_place);
    subject.text = std::string(algorithm.name) + " " + std::string(name_of(shape.collective)) + " ranks " +
                   std::to_string(shape.ranks) + " root " + std::to_string(shape.root) + " tiers " +
                   std::to_string(tiers.count()) + " in place " + std::to_string(variant) + (shape.codec != 0 ? " coded" : "");
    const Plan plain = subject.plan;
    for (const Chains chains : {Chains::separate, Chains::one_sum}) {
      subject.plan = plain;
      subject.request.chains = chains;
      subject.request.order = StepOrder::readiness;
      subject.request.capacity = 1;
      subject.request.places_keep_bytes = true;
      subject.lowered = false;
      attack(subject);
      const auto rules = chains == Chains::one_sum ? LoweringRules::Chains::fold : LoweringRules::Chains::keep;
      for (std::size_t r = 0; r < plain.programs.size(); ++r)
        subject.plan.programs[r] = lower(plain.programs[r], shape, subject.request.in_place[r], {rules});
      subject.request.places_keep_bytes = false;
      subject.lowered = true;
      attack(subject);
      subject.request.order = StepOrder::skewed;
      subject.request.capacity = 2;
      attack(subject);
      subject.request.capacity = 1;
      if (verify(subject.plan, subject.request).ok()) attack(subject);
    }
  }

  const std::vector<Tally>& tallies() const { return tallies_; }

 private:
  void attack(Subject& subject) {
    const Result<ChannelIndex> index = join_channels(subject.plan);
    ASSERT_TRUE(index.ok()) << subject.text;
    const Result<Outcome> outcome = verify(subject.plan, subject.request);
    ASSERT_TRUE(outcome.ok()) << subject.text << ": " << outcome.status().text();
    subject.outcome = outcome.value();
    const OracleRun right{subject.plan, index.value(), subject.request, nullptr};
    for (int i = 0; i < 3; ++i) {
      const auto trouble = run_once(right, random_);
      ASSERT_FALSE(trouble) << subject.text << ", undamaged: " << *trouble;
    }
    subject.expected = outputs_of(right, random_);
    for (std::size_t kind = 0; kind < mutations().size(); ++kind)
      for (int i = 0; i < kMutantsOfEach; ++i) try_mutant(subject, kind);
    lie_about_place(subject);
  }

  void try_mutant(const Subject& subject, std::size_t kind) {
    Plan mutant = subject.plan;
    if (!mutations()[kind].apply(mutant, random_)) return;
    if (mutant.programs == subject.plan.programs && mutant.shape == subject.plan.shape) return;
    record(subject, mutant, subject.request, kind);
  }

  // The program of a rank was built for one buffer but gets two, or the reverse.
  void lie_about_place(const Subject& subject) {
    VerifyRequest request = subject.request;
    InPlace& lie = request.in_place[random_() % request.in_place.size()];
    if (subject.plan.shape.collective == Collective::all_to_all) return;
    lie = lie == InPlace::yes ? InPlace::no : InPlace::yes;
    record(subject, subject.plan, request, mutations().size());
  }

  void record(const Subject& subject, const Plan& mutant, const VerifyRequest& request, std::size_t kind) {
    const Fate fate = judge(subject, mutant, request);
    Tally& tally = tallies_[kind];
    ++tally.fates[fate];
    if (fate == kStructure || (fate != kSurvived && ++sampled_ % 16 != 0)) return;
    const Result<ChannelIndex> index = join_channels(mutant);
    const OracleRun run{mutant, index.value(), request, subject.lowered ? &subject.expected : nullptr};
    std::optional<std::string> trouble;
    for (int i = 0; i < kInterleavings && !trouble; ++i) trouble = run_once(run, random_);
    if (fate == kSurvived) {
      if (trouble && tally.escaped++ == 0)
        ADD_FAILURE() << description(subject, request, kind) << *trouble << "\n" << to_text(mutant);
    } else {
      ++tally.killed_and_tried;
      tally.killed_and_wrong += trouble ? 1 : 0;
    }
  }

  static std::string description(const Subject& subject, const VerifyRequest& request, std::size_t kind) {
    return std::string(name_of_kind(kind)) + " of " + subject.text + (subject.lowered ? ", lowered" : "") +
           (request.order == StepOrder::skewed ? ", skewed" : "") + ", capacity " + std::to_string(request.capacity) +
           " survived: ";
  }

  std::mt19937_64 random_;
  std::uint64_t sampled_ = 0;
  std::vector<Tally> tallies_ = std::vector<Tally>(mutations().size() + 1);
};

void print(const std::vector<Tally>& tallies) {
  std::printf("%-28s %8s %8s %8s %8s %8s %8s %7s  %s\n", "mutation", "mutants", "structure", "values", "progress", "bits",
              "survived", "caught", "seen wrong by the oracle, of those caught and run");
  Tally all;
  const auto row = [](std::string_view name, const Tally& tally) {
    int total = 0;
    for (const int fate : tally.fates) total += fate;
    const double caught = total == 0 ? 0 : 100.0 * (total - tally.fates[kSurvived]) / total;
    std::printf("%-28.*s %8d %8d %8d %8d %8d %8d %6.1f%%  %d of %d\n", static_cast<int>(name.size()), name.data(), total,
                tally.fates[kStructure], tally.fates[kValues], tally.fates[kProgress], tally.fates[kBits], tally.fates[kSurvived],
                caught, tally.killed_and_wrong, tally.killed_and_tried);
  };
  for (std::size_t kind = 0; kind < tallies.size(); ++kind) {
    row(name_of_kind(kind), tallies[kind]);
    for (std::size_t fate = 0; fate < kFates; ++fate) all.fates[fate] += tallies[kind].fates[fate];
    all.killed_and_tried += tallies[kind].killed_and_tried;
    all.killed_and_wrong += tallies[kind].killed_and_wrong;
  }
  row("all", all);
  EXPECT_GT(2 * all.killed_and_wrong, all.killed_and_tried) << "the oracle detects too little";
}

class MutationTest : public testing::TestWithParam<int> {};

TEST_P(MutationTest, NoHarmfulMutantSurvives) {
  const int ranks = GetParam();
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed) + static_cast<unsigned long long>(ranks));
  Adversary adversary(ranks);
  int turn = 0;
  for (const Tiers& tiers : tierings(ranks))
    for (const Algorithm& algorithm : algorithms()) {
      Shape shape{algorithm.collective, ranks, ranks / 2, 1, Finish::none};
      shape.pieces = algorithm.pieces(shape, tiers);
      if (!algorithm.refuses(shape, tiers).empty()) continue;
      if (tiers.count() > 1 && !support::follows_tiers(algorithm.name)) continue;
      for (int one = 0; one < kVariants; ++one) {
        const int variant = turn++ % 3;
        shape.finish = reduces(shape.collective) ? static_cast<Finish>(variant) : Finish::none;
        shape.codec = 0;
        adversary.attack(algorithm, shape, tiers, variant);
        shape.codec = 1;
        shape.coded_tiers = static_cast<std::uint8_t>(1U << (tiers.count() - 1));
        if (algorithm.encodings(shape, tiers) > 0) adversary.attack(algorithm, shape, tiers, variant);
        if (HasFatalFailure()) return;
      }
    }
  print(adversary.tallies());
}

INSTANTIATE_TEST_SUITE_P(Ranks, MutationTest, testing::Range(2, 7));

}  // namespace
}  // namespace seto
