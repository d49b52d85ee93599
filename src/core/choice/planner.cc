#include "src/core/choice/planner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "src/base/far_link.h"
#include "src/codec/codec.h"
#include "src/core/call/ids.h"
#include "src/core/choice/boundaries.h"
#include "src/core/choice/link_codec.h"
#include "src/core/choice/peer_budget.h"
#include "src/engine/coding.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

std::uint64_t chunk_bytes(const Question& question, const Algorithm& algorithm, const Tiers& tiers) {
  const Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  return std::max<std::uint64_t>(1, question.bytes / std::max(1U, algorithm.pieces(shape, tiers)));
}

// Bytes on the wire for each byte of numbers. For a few numbers the coded form may be longer.
double wire_share(const Question& question) {
  const auto count = std::max<std::uint64_t>(1, question.bytes / size_of(question.type));
  return static_cast<double>(encoded_size(codec_of(question.codec), count)) / static_cast<double>(count * size_of(question.type));
}

// With this window, no link that was measured so far limits a stream.
constexpr std::uint64_t kLargestWindow = 256 << 20;

constexpr std::uint64_t kSmallestSlice = 16 << 10;
constexpr std::uint64_t kPage = 4 << 10;

// Slices of a long link that are shorter cost more than they gain.
constexpr std::uint64_t kSmallestSliceOfALongLink = 64 << 10;
constexpr double kStagesOverlap = 8;  // slices of a message

// Ranks of a site that send over its link at the same time, by the bytes of the site and of its busiest rank.
double side_by_side(const PlanLoad& load, const Tiers& tiers) {
  const TierLoad& widest = load.tiers[static_cast<std::size_t>(tiers.count() - 1)];
  return widest.wire > 0 ? std::max(1.0, widest.shared / widest.wire) : 1;
}

// On a long link the flow decides the bytes of a slice on the wire, and the ranks that share the link divide them: while a slice
// of each of them crosses the link side by side, nothing arrives. A message has eight slices if it is long enough, so that the
// stages of a plan overlap. All stages have the same slices (decision 28).
std::uint64_t slice_of_a_long_link(std::uint64_t chunk, const PlanLoad& load, double wire_bytes, double share) {
  const auto smallest =
      load.passes_on() ? kSmallestSlice : std::clamp(std::bit_ceil(chunk), kSmallestSlice, kSmallestSliceOfALongLink);
  const auto largest = static_cast<std::uint64_t>(wire_bytes / share) / kPage * kPage;
  const auto wanted = std::bit_ceil(static_cast<std::uint64_t>(static_cast<double>(chunk) / kStagesOverlap));
  return std::clamp(wanted, smallest, std::max(smallest, largest));
}

constexpr std::uint32_t kDepth = 2;
constexpr std::uint64_t kSmallestSharedSlice = 64 << 10;  // of ranks that share a core, or a cache with many slots

// The longest slice of which the slots that a rank fills stay in its cache. Within a node each chunk that it sends has slots of
// its own. Measured, 4 ranks on 2 cores with 1 MiB each, slices of 64 / 128 / 256 / 512 KiB: an all_reduce of 4 MiB, which sends
// four chunks, takes 758, 726, 795 and 998 us, an all_gather, which sends one, 370, 299, 291 and 291.
std::uint64_t longest_slice(const PlanLoad& load, double chunks_of_a_part, const Tiers& tiers, const CostModel& model) {
  const std::uint64_t largest = largest_slice(load.passes_on(), tiers, model);
  if (tiers.count() > 1 || tiers.kind(0) != TierKind::node || model.node.cached_bytes <= 0) return largest;
  const double rings = std::max(1.0, load.rank.sent * std::round(chunks_of_a_part));  // the last one may be shorter
  const auto fitting = static_cast<std::uint64_t>(model.node.cached_bytes / (kDepth * rings));
  return std::clamp(std::bit_floor(fitting), kSmallestSharedSlice, largest);
}

// The slices that choice may take.
struct SliceLimits {
  std::uint64_t largest = 0;  // that does not overlap with others
  std::uint64_t longest = 0;  // as longest_slice()
};

// A slice is long enough that its synchronisation does not show. A message that ranks pass on has eight slices if it is long
// enough, so that stages overlap. Where ranks share a core every slice costs a switch, so there are two, or at least four of
// those that are longer than the largest one.
std::uint64_t slice_in_cache(std::uint64_t chunk, const PlanLoad& load, double crowding, const SliceLimits& limits) {
  if (crowding <= 1) return std::clamp(std::bit_ceil(load.passes_on() ? chunk / 8 : chunk), kSmallestSlice, limits.longest);
  const std::uint64_t of_two = std::min(std::bit_ceil(chunk / 2), limits.largest);
  return std::clamp(std::max(of_two, std::bit_floor(chunk / 4)), kSmallestSharedSlice, limits.longest);
}

// The input of an algorithm's candidates and their estimates.
struct Candidacy {
  const Algorithm& algorithm;
  const Question& question;
  const Tiers& tiers;
  const CostModel& model;
  std::uint8_t coded_tiers = 0;

  [[nodiscard]] double share() const { return coded_tiers != 0 ? wire_share(question) : 1; }
};

Cut cut_for(const Candidacy& one, const PlanLoad& load) {
  const std::uint64_t chunk = chunk_bytes(one.question, one.algorithm, one.tiers);
  Flow flow = flow_on(one.tiers.widest(), one.tiers, one.model);
  if (const double slowest = one.tiers.slowest_rate(); slowest > 0)
    flow.slice_bytes = std::min(flow.slice_bytes, slice_of(slowest, 2 * one.model.of(one.tiers.widest()).latency_seconds));
  const bool is_long = flow.order == StepOrder::readiness;
  const double wire_bytes = static_cast<double>(flow.slice_bytes) / side_by_side(load, one.tiers);
  const double chunks = static_cast<double>(one.question.bytes) / static_cast<double>(chunk);
  return {is_long
              ? slice_of_a_long_link(chunk, load, wire_bytes, one.share())
              : slice_in_cache(chunk, load, one.question.crowding,
                               {largest_slice(false, one.tiers, one.model), longest_slice(load, chunks, one.tiers, one.model)}),
          kDepth, flow.order, flow.window_bytes};
}

Estimate estimate(const Candidacy& one, const PlanLoad& load) {
  const auto chunk = static_cast<double>(chunk_bytes(one.question, one.algorithm, one.tiers));
  const auto slice = static_cast<double>(cut_for(one, load).slice_bytes);
  const Workload work{static_cast<double>(one.question.bytes), std::max(1.0, chunk / slice), one.question.crowding,
                      one.coded_tiers, one.share()};
  return estimate_of(load, one.tiers, work, one.model);
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
  question.deterministic = call.deterministic || here.config->deterministic;
  question.crowding = question.deterministic ? 1 : here.crowding;
  if (here.ranks == 1) return question;  // no message is sent
  const Tiers& tiers = here.tiers_of(question);
  if (call.codec != 0) {
    allow_codec(question, call.op, CodecSetting::of_id(call.codec), tiers);
  } else if (here.config->codec.empty()) {
    allow_link_codec(question, call.op, tiers, *here.costs);
  } else if (const Result<CodecSetting> setting = CodecSetting::parse(here.config->codec); setting.ok()) {
    allow_codec(question, call.op, setting.value(), tiers);  // an unknown codec was rejected when the communicator was made
  }
  return question;
}

Flow flow_on(TierKind kind, const Tiers& tiers, const CostModel& model) {
  const TierCost& cost = model.of(kind);
  LinkFacts link{.bytes_per_second = cost.bytes_per_second, .round_trip_s = 2 * cost.latency_seconds};
  if (model.source == CostSource::measured && is_far_seconds(*link.round_trip_s) &&
      !(kind == TierKind::world && model.between_sites.bytes_per_second))
    link.bytes_per_second.reset();  // it is assumed
  Flow flow = flow_of(link, kLargestWindow);
  flow.sockets = sockets_on(kind, tiers, model);
  return flow;
}

std::string Candidate::name(const Question& question) const {
  const std::string own(algorithm->name);
  return coded_tiers == 0 ? own : own + " in " + std::string(codec_name(question.codec));
}

void allow_codec(Question& question, ReduceOp op, const CodecSetting& setting, const Tiers& tiers) {
  if (!takes_codec(setting.number, question.collective, question.type, op)) return;
  question.codec = setting.number;
  question.codec_tiers = setting.on(tiers);
}

namespace {

// The ways in which an algorithm may run: exactly, and coded on the permitted tiers if it can do that.
std::vector<Candidate> ways_of(const Algorithm& algorithm, const Question& question, const Tiers& tiers, const CostModel& model) {
  Shape shape{question.collective, question.ranks, question.root, 1, Finish::none};
  std::vector<Candidate> ways;
  const bool pinned = algorithm.name == question.pin;
  const PlanLoad load = algorithm.cost_form(tiers);
  const auto add = [&](std::uint8_t coded_tiers) {
    shape.codec = coded_tiers == 0 ? std::uint8_t{0} : question.codec;
    shape.coded_tiers = coded_tiers;
    if (coded_tiers != 0 && algorithm.encodings(shape, tiers) == 0) return;
    const std::uint32_t most = pinned ? std::numeric_limits<std::uint32_t>::max() : kMostEncodings;
    const std::string refused = refusal_of(algorithm, shape, tiers, most);
    ways.push_back({&algorithm, coded_tiers, estimate({algorithm, question, tiers, model, coded_tiers}, load), load.rank.peers,
                    load.saves_peers, refused});
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
    for (Candidate& way : ways_of(algorithm, question, tiers, model)) choice.candidates.push_back(std::move(way));
  }
  obey_peer_budget(choice.candidates, tiers, question.pin);
  for (Candidate& candidate : choice.candidates) {
    if (!candidate.refused.empty() || question.pin.empty() || candidate.algorithm->name == question.pin) continue;
    candidate.refused = std::string(question.pin) + " is pinned";
    candidate.pinned_away = true;
  }
  for (const Candidate& candidate : choice.candidates)
    if (candidate.refused.empty() && (best == nullptr || candidate.estimate.seconds < best->estimate.seconds)) best = &candidate;
  if (best == nullptr && !question.pin.empty()) {  // this collective has no algorithm of that name, or it cannot run here
    Question free = question;
    free.pin = {};
    return choose(free, tiers, model);
  }
  if (best == nullptr) return failure(Code::internal, "no algorithm for %s", name_of(question.collective).data());
  choice.algorithm = best->algorithm;
  choice.coded_tiers = best->coded_tiers;
  choice.codec = best->coded_tiers == 0 ? std::uint8_t{0} : question.codec;
  choice.cut = cut_for({*best->algorithm, question, tiers, model, best->coded_tiers}, best->algorithm->cost_form(tiers));
  return choice;
}

std::optional<PinCost> cost_of_pin(const Question& question, const Choice& choice) {
  if (question.pin.empty() || choice.algorithm->name != question.pin) return std::nullopt;
  PinCost cost;
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.can_run() && (cost.best == nullptr || candidate.estimate.seconds < cost.best->estimate.seconds))
      cost.best = &candidate;
    if (candidate.algorithm == choice.algorithm && candidate.coded_tiers == choice.coded_tiers)
      cost.seconds = candidate.estimate.seconds;
  }
  return cost.best == nullptr ? std::nullopt : std::optional(cost);
}

std::string pin_followed(const Question& question, const Choice& choice) {
  const std::optional<PinCost> cost = cost_of_pin(question, choice);
  if (!cost) return {};
  const std::string pin(question.pin);
  char text[256];
  if (cost->best->algorithm == choice.algorithm) {
    std::snprintf(text, sizeof text, "%s is pinned: %.3g ms predicted, and no other is faster", pin.c_str(), cost->seconds * 1e3);
  } else {
    std::snprintf(text, sizeof text, "%s is pinned: %.3g ms predicted, %.2f times the %.3g ms of %s, which is the best",
                  pin.c_str(), cost->seconds * 1e3, cost->times(), cost->best->estimate.seconds * 1e3,
                  cost->best->name(question).c_str());
  }
  return text;
}

std::string pin_ignored(const Question& question, const Choice& choice) {
  if (question.pin.empty() || choice.algorithm->name == question.pin) return {};
  std::string_view refused;
  for (const Candidate& candidate : choice.candidates)
    if (candidate.algorithm->name == question.pin && candidate.coded_tiers == 0) refused = candidate.refused;
  const std::string why = refused.empty() ? std::string(name_of(question.collective)) + " has no such algorithm"
                                          : "it is impossible here (" + std::string(refused) + ")";
  return std::string(question.pin) + " is pinned, but " + why + "; the pin is ignored";
}

}  // namespace seto
