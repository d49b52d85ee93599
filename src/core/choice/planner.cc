#include "src/core/choice/planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "src/codec/codec.h"
#include "src/core/call/ids.h"
#include "src/engine/coding.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

// Closed cost forms over `n` ranks and parts of `s` bytes: hops times what a hop costs, plus the bytes that the busiest rank
// passes over, in copies of one part: copying counts 1, adding k vectors into one (1 + k) / 3.
struct Form {
  std::string_view algorithm;
  Collective collective;
  double (*hops)(double n);
  double (*copies)(double n);
};

double adding(double k) { return (1 + k) / 3; }
double log2_up(double n) { return std::ceil(std::log2(std::max(n, 1.0))); }
double none(double) { return 0; }

using C = Collective;

constexpr Form kForms[] = {
    {"one_shot", C::all_reduce, [](double n) { return n > 1 ? 1.0 : 0.0; }, [](double n) { return n > 1 ? 1 + adding(n) : 1; }},
    {"two_shot", C::all_reduce, [](double) { return 2.0; }, [](double n) { return 2 * (n - 1) / n + (adding(n) + 0.5) / n; }},
    {"ring", C::all_reduce, [](double n) { return 2 * (n - 1); },
     [](double n) { return (n - 1) / n * (0.5 + adding(2)) + 1.5 * (n - 1) / n; }},
    {"double_tree", C::all_reduce, [](double n) { return 2 * log2_up(n); }, [](double) { return 3.3; }},
    {"halving_doubling", C::all_reduce, [](double n) { return 2 * log2_up(n); }, [](double n) { return 4.2 * (n - 1) / n; }},
    {"recursive_doubling", C::all_reduce,
     [](double n) { return log2_up(n) + (std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 2); },
     [](double n) { return (1.2 + adding(2)) * log2_up(n); }},
    {"hierarchical", C::all_reduce, [](double) { return 2.0; }, [](double n) { return 2.5 * (n - 1) / n; }},
    {"direct", C::all_gather, [](double) { return 1.0; }, [](double n) { return 1 + n; }},
    {"ring", C::all_gather, [](double n) { return n - 1; }, [](double n) { return 1.5 * n; }},
    {"doubling", C::all_gather, log2_up, [](double n) { return 2 * n; }},
    {"hierarchical", C::all_gather, [](double) { return 2.0; }, [](double n) { return 1.5 * n; }},
    {"direct", C::reduce_scatter, [](double) { return 1.0; }, [](double n) { return n - 1 + adding(n); }},
    {"ring", C::reduce_scatter, [](double n) { return n - 1; }, [](double n) { return 1.5 * n; }},
    {"halving", C::reduce_scatter, log2_up, [](double n) { return 2 * n; }},
    {"hierarchical", C::reduce_scatter, [](double) { return 2.0; }, [](double n) { return 1.5 * n; }},
    {"direct", C::broadcast, [](double) { return 1.0; }, [](double) { return 1.0; }},
    {"tree", C::broadcast, log2_up, [](double) { return 2.5; }},
    {"ring", C::broadcast, [](double n) { return n - 1; }, [](double) { return 1.5; }},
    {"hierarchical", C::broadcast, [](double) { return 2.0; }, [](double) { return 1.5; }},
    {"direct", C::reduce, [](double) { return 1.0; }, [](double n) { return adding(n); }},
    {"tree", C::reduce, log2_up, [](double) { return 2.5; }},
    {"ring", C::reduce, [](double n) { return n - 1; }, [](double) { return 1.5; }},
    {"hierarchical", C::reduce, [](double) { return 2.0; }, [](double n) { return adding(n) * 0.8; }},
    {"direct", C::all_to_all, [](double) { return 1.0; }, [](double n) { return 2 * n; }},
    {"pairwise", C::all_to_all, [](double n) { return n - 1; }, [](double n) { return 2 * n; }},
    {"direct", C::gather, [](double) { return 1.0; }, [](double n) { return n; }},
    {"direct", C::scatter, [](double) { return 1.0; }, [](double n) { return n; }},
    {"one_shot", C::barrier, [](double) { return 1.0; }, none},
    {"recursive_doubling", C::barrier, log2_up, none},
};

// Where a message passes through one rank after another, or to a rank that has nothing else to do, the next slice travels
// meanwhile. In the other algorithms every rank is busy all the time, and slices only cost their synchronisation.
bool passes_on(const Algorithm& algorithm) { return algorithm.name == "double_tree" || is_rooted(algorithm.collective); }

// A slice is long enough that its synchronisation does not show and short enough that its slots stay in the second-level cache
// of the core that fills or empties them; a message that is passed on makes eight where it can, so that stages overlap. Measured
// for the others, 2 ranks, 1 MiB, slices of 64 / 128 / 256 / 512 KiB: 58, 55, 49, 51 us near, 85, 79, 84, 74 far; at 4 MiB 248,
// 217, 217, 201 and 330, 318, 303, 306. Where ranks share a core every slice costs a switch (4 ranks on 2 cores: 128 to 256 KiB).
Cut cut_for(const Question& question, const Algorithm& algorithm) {
  constexpr std::uint64_t kSmallest = 16 << 10;
  constexpr std::uint64_t kLargest = 256 << 10;
  const Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  const std::uint64_t chunk = std::max<std::uint64_t>(1, question.bytes / std::max(1U, algorithm.pieces(shape)));
  if (question.crowding > 1) return {std::clamp(std::bit_ceil(chunk / 2), 4 * kSmallest, kLargest), 2};
  if (passes_on(algorithm)) return {std::clamp(std::bit_ceil(chunk / 8), kSmallest, kLargest), 2};
  return {std::clamp(std::bit_ceil(chunk), kSmallest, kLargest), 2};
}

// What one form costs among `n` ranks that a tier joins, with parts of `bytes`, sent in slices of up to `slice`.
struct TierLoad {
  double n = 1;
  double bytes = 0;
  double slice = 0;
  bool coded = false;
};

// Bytes on the wire for each byte of numbers: of a few numbers they may be more.
double wire_share(const Question& question) {
  const auto count = std::max<std::uint64_t>(1, question.bytes / size_of(question.type));
  return static_cast<double>(encoded_size(codec_of(question.codec), count)) / static_cast<double>(count * size_of(question.type));
}

// A machine that was too busy to copy at its rate when it was measured would have encoded as slowly: else a codec would be chosen
// within a node because of one busy moment, and lose ever after.
double codec_rate(const CostModel& model) {
  const double busy = model.source == CostSource::measured ? model.node.bytes_per_second / CostModel().node.bytes_per_second : 1;
  return model.codec_bytes_per_second * std::min(1.0, busy);
}

double seconds(const Form& form, const TierLoad& load, const TierCost& tier, const Question& question, const CostModel& model) {
  const double rate = tier.bytes_per_second / question.crowding;
  // Coded, each byte is encoded or decoded where it would only be copied.
  const double a_byte = load.coded ? wire_share(question) / rate + question.crowding / codec_rate(model) : 1 / rate;
  // The first slice has to pass each hop before anything can overlap.
  const double hop = tier.latency_seconds + load.slice * a_byte + (question.crowding > 1 ? model.switch_seconds : 0);
  return form.hops(load.n) * hop + form.copies(load.n) * load.bytes * a_byte;
}

double seconds(const Algorithm& algorithm, const Question& question, const Tiers& tiers, const CostModel& model,
               std::uint8_t coded_tiers) {
  const auto form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& each) {
    return each.collective == algorithm.collective && each.algorithm == algorithm.name;
  });
  if (form == std::end(kForms)) return std::numeric_limits<double>::infinity();
  const Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  const auto bytes = static_cast<double>(question.bytes);
  const double slice = !passes_on(algorithm) ? 0
                                             : std::min(bytes / std::max(1U, algorithm.pieces(shape)),
                                                        static_cast<double>(cut_for(question, algorithm).slice_bytes));
  if (algorithm.name != "hierarchical")
    return seconds(*form, {static_cast<double>(question.ranks), bytes, slice, coded_tiers != 0}, model.of(tiers.widest()),
                   question, model);
  // Each tier moves what the tiers within it have scattered already; rooted ones scatter nothing.
  const bool parts = question.collective == Collective::all_gather || question.collective == Collective::reduce_scatter;
  double left = parts ? bytes * question.ranks : bytes;
  double sum = 0;
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const double members = tiers.size(tier);
    const double load = parts ? left / members : left;
    sum += seconds(*form, {members, load, std::min(slice, load), (coded_tiers >> tier & 1) != 0}, model.of(tiers.kind(tier)),
                   question, model);
    if (parts || question.collective == Collective::all_reduce) left /= members;
  }
  return sum;
}

}  // namespace

Question question_of(const Call& call, const Surroundings& here) {
  const std::uint64_t most = call.counts.empty() ? call.count : *std::max_element(call.counts.begin(), call.counts.end());
  Question question;
  question.collective = call.collective;
  question.ranks = here.ranks;
  question.root = call.root;
  question.bytes = most * size_of(call.type);
  question.type = call.type;
  question.pin = call.algorithm != 0 ? algorithm_name(call.algorithm) : std::string_view(here.config->algorithm);
  question.crowding = here.crowding;
  question.deterministic = call.deterministic || here.config->deterministic;
  if (here.ranks == 1) return question;  // nothing travels
  if (call.codec != 0) {
    allow_codec(question, call.op, CodecSetting::of_id(call.codec), *here.tiers);
  } else if (const Result<CodecSetting> setting = CodecSetting::parse(here.config->codec); setting.ok()) {
    allow_codec(question, call.op, setting.value(), *here.tiers);  // one that is none was refused when the communicator was made
  }
  return question;
}

std::string Candidate::name(const Question& question) const {
  const std::string own(algorithm->name);
  return coded_tiers == 0 ? own : own + " in " + std::string(codec_name(question.codec));
}

bool takes_codec(std::uint8_t number, Collective collective, DataType type, ReduceOp op) {
  if (number == 0 || !sums(op) || !reduces(collective) || collective == Collective::barrier) return false;
  return encodes(codec_of(number), type);
}

void allow_codec(Question& question, ReduceOp op, const CodecSetting& setting, const Tiers& tiers) {
  if (!takes_codec(setting.number, question.collective, question.type, op)) return;
  question.codec = setting.number;
  question.codec_tiers = setting.on(tiers);
}

namespace {

// The ways in which an algorithm may run: exactly, and coded on the tiers that may be, if it can do that.
std::vector<Candidate> ways_of(const Algorithm& algorithm, const Question& question, const Tiers& tiers, const CostModel& model) {
  Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  std::vector<Candidate> ways;
  const bool pinned = algorithm.name == question.pin;
  const auto add = [&](std::uint8_t coded_tiers) {
    shape.codec = coded_tiers == 0 ? std::uint8_t{0} : question.codec;
    shape.coded_tiers = coded_tiers;
    if (coded_tiers != 0 && algorithm.encodings(shape, tiers) == 0) return;
    const std::uint32_t most = pinned ? std::numeric_limits<std::uint32_t>::max() : kMostEncodings;
    ways.push_back({&algorithm, coded_tiers, seconds(algorithm, question, tiers, model, coded_tiers),
                    refusal_of(algorithm, shape, tiers, most)});
  };
  add(0);
  const auto all = static_cast<std::uint8_t>((1U << tiers.count()) - 1);
  const auto widest = static_cast<std::uint8_t>(1U << (tiers.count() - 1));
  if ((question.codec_tiers & all) == all) add(all);
  if (widest != all && (question.codec_tiers & widest) != 0) add(widest);
  return ways;
}

}  // namespace

Result<Choice> choose(const Question& question, const Tiers& tiers, const CostModel& costs) {
  const CostModel model = question.deterministic ? CostModel() : costs;
  Choice choice;
  const Candidate* best = nullptr;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != question.collective) continue;
    for (Candidate& way : ways_of(algorithm, question, tiers, model)) {
      if (way.refused.empty() && !question.pin.empty() && algorithm.name != question.pin) way.refused = "another one is pinned";
      choice.candidates.push_back(std::move(way));
    }
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
  choice.coded_tiers = best->coded_tiers;
  choice.codec = best->coded_tiers == 0 ? std::uint8_t{0} : question.codec;
  choice.cut = cut_for(question, *best->algorithm);
  return choice;
}

}  // namespace seto
