#include "src/core/planner.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace seto {
namespace {

// Closed cost forms: hops times latency, plus bytes that the busiest rank passes over, divided by its rate. `n` ranks, `s` bytes
// of one part.
struct Form {
  std::string_view algorithm;
  Collective collective;
  double (*hops)(double n);
  double (*passes)(double n);  // bytes that the busiest rank passes over, in parts
};

double log2_up(double n) { return std::ceil(std::log2(std::max(n, 1.0))); }
double none(double) { return 0; }

using C = Collective;

constexpr Form kForms[] = {
    // One-shot: each rank writes its vector once and reads n; reading n - 1 foreign vectors is one pass.
    {"one_shot", C::all_reduce, [](double n) { return n > 1 ? 1.0 : 0.0; }, [](double n) { return 1 + n; }},
    {"two_shot", C::all_reduce, [](double) { return 2.0; }, [](double n) { return 1 + 1 + (n - 1) / n + 1 / n; }},
    {"ring", C::all_reduce, [](double n) { return 2 * (n - 1); }, [](double n) { return 4 * (n - 1) / n; }},
    {"double_tree", C::all_reduce, [](double n) { return 2 * log2_up(n); }, [](double) { return 5.0; }},
    {"halving_doubling", C::all_reduce, [](double n) { return 2 * log2_up(n); }, [](double n) { return 4.5 * (n - 1) / n; }},
    {"recursive_doubling", C::all_reduce, [](double n) { return log2_up(n) + (std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 2); },
     [](double n) { return 3 * log2_up(n); }},
    {"hierarchical", C::all_reduce, [](double) { return 2.0; }, [](double n) { return 2 + 2 * (n - 1) / n; }},
    {"direct", C::all_gather, [](double) { return 1.0; }, [](double n) { return 1 + n; }},
    {"ring", C::all_gather, [](double n) { return n - 1; }, [](double n) { return 2 * n; }},
    {"doubling", C::all_gather, log2_up, [](double n) { return 2 * n; }},
    {"hierarchical", C::all_gather, [](double) { return 2.0; }, [](double n) { return 1.5 * n; }},
    {"direct", C::reduce_scatter, [](double) { return 1.0; }, [](double n) { return 2 * n; }},
    {"ring", C::reduce_scatter, [](double n) { return n - 1; }, [](double n) { return 3 * n; }},
    {"halving", C::reduce_scatter, log2_up, [](double n) { return 3 * n; }},
    {"hierarchical", C::reduce_scatter, [](double) { return 2.0; }, [](double n) { return 2.5 * n; }},
    {"direct", C::broadcast, [](double) { return 1.0; }, [](double) { return 2.0; }},
    {"tree", C::broadcast, log2_up, [](double) { return 3.0; }},
    {"ring", C::broadcast, [](double n) { return n - 1; }, [](double) { return 2.5; }},
    {"hierarchical", C::broadcast, [](double) { return 2.0; }, [](double) { return 2.5; }},
    {"direct", C::reduce, [](double) { return 1.0; }, [](double n) { return n; }},
    {"tree", C::reduce, log2_up, [](double) { return 4.0; }},
    {"ring", C::reduce, [](double n) { return n - 1; }, [](double) { return 3.0; }},
    {"hierarchical", C::reduce, [](double) { return 2.0; }, [](double n) { return 1 + n / 2; }},
    {"direct", C::all_to_all, [](double) { return 1.0; }, [](double n) { return 2 * n; }},
    {"pairwise", C::all_to_all, [](double n) { return n - 1; }, [](double n) { return 2 * n; }},
    {"direct", C::gather, [](double) { return 1.0; }, [](double n) { return n; }},
    {"direct", C::scatter, [](double) { return 1.0; }, [](double n) { return n; }},
    {"one_shot", C::barrier, [](double) { return 1.0; }, none},
    {"recursive_doubling", C::barrier, log2_up, none},
};

double seconds(const Algorithm& algorithm, const Question& question, const Tiers& tiers, const CostModel& model) {
  const TierCost& tier = tiers.count() > 2 ? model.world : tiers.count() > 1 ? model.site : model.node;
  const auto n = static_cast<double>(question.ranks);
  for (const Form& form : kForms)
    if (form.collective == algorithm.collective && form.algorithm == algorithm.name)
      return form.hops(n) * tier.latency_seconds + form.passes(n) * static_cast<double>(question.bytes) / tier.bytes_per_second;
  return 1e9;
}

// A slice is short enough that its slots stay in the second-level cache of the core that fills or empties them, and long enough
// that its synchronisation does not show; at least four slices where the chunk allows, so that stages overlap.
Cut cut_for(const Question& question, const Algorithm& algorithm, const Tiers& tiers) {
  constexpr std::uint64_t kSmallest = 16 << 10;
  constexpr std::uint64_t kLargest = 128 << 10;
  Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  const std::uint64_t chunk = question.bytes / std::max(1U, algorithm.pieces(shape));
  (void)tiers;
  const std::uint64_t quarter = std::bit_ceil(std::max<std::uint64_t>(1, chunk / 4));
  return {std::clamp(quarter, kSmallest, kLargest), 2};
}

}  // namespace

Result<Choice> choose(const Question& question, const Tiers& tiers, const CostModel& model) {
  Choice choice;
  const Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  const Candidate* best = nullptr;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != question.collective) continue;
    Candidate candidate{&algorithm, seconds(algorithm, question, tiers, model), algorithm.refuses(shape, tiers)};
    if (candidate.refused.empty() && !question.pin.empty() && algorithm.name != question.pin) candidate.refused = "another one is pinned";
    choice.candidates.push_back(candidate);
  }
  for (const Candidate& candidate : choice.candidates)
    if (candidate.refused.empty() && (best == nullptr || candidate.seconds < best->seconds)) best = &candidate;
  if (best == nullptr && !question.pin.empty()) {  // a pin that this collective does not know, or that is impossible here
    Question free = question;
    free.pin = {};
    return choose(free, tiers, model);
  }
  if (best == nullptr) return failure(Code::internal, "no algorithm for %s", name_of(question.collective).data());
  choice.algorithm = best->algorithm;
  choice.cut = cut_for(question, *best->algorithm, tiers);
  return choice;
}

}  // namespace seto
