#include "src/report/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "src/base/json_writer.h"
#include "src/base/text.h"
#include "src/core/call/collective_call.h"
#include "src/core/call/ids.h"
#include "src/core/choice/link_codec.h"
#include "src/core/communicator/communicator.h"
#include "src/core/connect/context.h"
#include "src/report/explain_tiers.h"

namespace seto {
namespace {

bool is_chosen(const Candidate& candidate, const Choice& choice) {
  return candidate.algorithm == choice.algorithm && candidate.coded_tiers == choice.coded_tiers;
}

std::string verdict(const Candidate& candidate, const Choice& choice, const Tiers& tiers) {
  if (is_chosen(candidate, choice)) return "chosen";
  if (!candidate.has_estimate()) return candidate.refused;
  Estimate best;
  for (const Candidate& other : choice.candidates)
    if (is_chosen(other, choice)) best = other.estimate;
  if (candidate.pinned_away) {
    char times[64];
    std::snprintf(times, sizeof times, ": this one takes %.2f times its time", candidate.estimate.seconds / best.seconds);
    return candidate.refused + times;
  }
  if (candidate.left_out) {
    char times[64];
    std::snprintf(times, sizeof times, ": %.2f times the time of the chosen one", candidate.estimate.seconds / best.seconds);
    return candidate.refused + times;
  }
  if (candidate.estimate.seconds <= best.seconds) return "as fast; the first is taken";
  char text[64];
  std::snprintf(text, sizeof text, "%.2f times the time of the chosen one: ", candidate.estimate.seconds / best.seconds);
  return text + greatest_loss(candidate.estimate, best, tiers);
}

// "all_reduce, 64M", "all_gather, parts of 16M", "barrier"
std::string call_text(const Question& question) {
  const std::string name(name_of(question.collective));
  if (question.collective == Collective::barrier) return name;
  return name + (has_parts(question.collective) ? ", parts of " : ", ") + size_text(question.bytes);
}

// The content of the report; `remark` describes the constants.
struct Report {
  const Question& question;
  const Tiers& tiers;
  const CostModel& costs;
  const Choice& choice;
  std::string_view remark;
  const Config& config;
  const LiveFacts* live;    // null: the ranks are made up
  const GraphFacts* graph;  // of a topology file, or null

  [[nodiscard]] std::vector<TierFacts> facts() const {
    std::vector<TierFacts> all = tier_facts(question, tiers, costs, choice, config, live);
    for (int tier = 0; graph != nullptr && !question.deterministic && tier < tiers.count(); ++tier) {
      const TierOrigins& origins = graph->origins[static_cast<std::size_t>(tiers.kind(tier))];
      TierFacts& facts = all[static_cast<std::size_t>(tier)];
      facts.latency_origin = origins.latency;
      facts.rate_origin = origins.rate;
      facts.link = origins.link;
    }
    return all;
  }
};

// "  node 2 hops 0.50 us; site 2 hops 16.00 us, wire 16M 5.333 ms; memory 150M 4.700 ms, steps 0.15 us"
std::string parts_of(const Estimate& estimate, const Tiers& tiers) {
  std::string text = " ";
  char hops[32];
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const TierEstimate& on = estimate.tiers[static_cast<std::size_t>(tier)];
    std::snprintf(hops, sizeof hops, "%.3g", on.hops);
    text.append(" ").append(kind_name(tiers, tier)).append(" ").append(hops).append(on.hops == 1 ? " hop " : " hops ");
    text.append(duration_text(on.latency_seconds));
    if (on.wire_seconds > 0)
      text.append(", wire ").append(amount_text(on.wire_bytes)).append(" ").append(duration_text(on.wire_seconds));
    if (on.message_seconds > 0)
      text.append(", ")
          .append(std::to_string(std::llround(on.messages)))
          .append(" messages ")
          .append(duration_text(on.message_seconds));
    text.append(";");
  }
  return text + " memory " + amount_text(estimate.memory_bytes) + " " + duration_text(estimate.memory_seconds) + ", steps " +
         duration_text(estimate.step_seconds);
}

// The choice, with the cut that settings state.
Result<Choice> chosen(const Question& question, const Tiers& tiers, const CostModel& costs, const Config& config) {
  SETO_ASSIGN(Choice choice, choose(question, tiers, costs));
  if (config.slice_bytes != kAutomatic) choice.cut.slice_bytes = config.slice_bytes;
  if (config.slot_depth != kAutomatic) choice.cut.depth = static_cast<std::uint32_t>(config.slot_depth);
  return choice;
}

// "slices of 64K (SETO_SLICE_BYTES), 8 in flight"
std::string cut_text(const Cut& cut, const Config& config) {
  std::string text = "slices of " + size_text(cut.slice_bytes);
  text.append(config.slice_bytes == kAutomatic ? ", " : " (SETO_SLICE_BYTES), ").append(std::to_string(cut.depth));
  text.append(config.slot_depth == kAutomatic ? " in flight" : " in flight (SETO_SLOT_DEPTH)");
  return text.append(cut.order == StepOrder::readiness ? ", in readiness order: the link is far" : "");
}

std::string as_text(const Report& report) {
  const auto& [question, tiers, costs, choice, remark, config, live, graph] = report;
  char line[256];
  std::string text = call_text(question) + ", " + std::to_string(question.ranks) +
                     (question.ranks == 1 ? " rank, " : " ranks, ") + std::to_string(tiers.count()) +
                     (tiers.count() == 1 ? " tier\n" : " tiers\n");
  if (const std::string ignored = pin_ignored(question, choice); !ignored.empty()) text += ignored + "\n";
  if (const std::string followed = pin_followed(question, choice); !followed.empty()) text += followed + "\n";
  int widest = 20;
  for (const Candidate& candidate : choice.candidates)
    widest = std::max(widest, static_cast<int>(candidate.name(question).size()));
  std::snprintf(line, sizeof line, "  %-*s %14s  %s\n", widest, "algorithm", "estimate", "verdict");
  text += line;
  for (const Candidate& candidate : choice.candidates) {
    std::snprintf(line, sizeof line, "%s %-*s %14s  %s\n", is_chosen(candidate, choice) ? "*" : " ", widest,
                  candidate.name(question).c_str(),
                  candidate.has_estimate() ? duration_text(candidate.estimate.seconds).c_str() : "-",
                  verdict(candidate, choice, tiers).c_str());
    text += line;
  }
  text += "what the estimates are made of:\n";
  for (const Candidate& candidate : choice.candidates) {
    if (!candidate.has_estimate()) continue;
    std::snprintf(line, sizeof line, "  %-*s", widest, candidate.name(question).c_str());
    text.append(line).append(parts_of(candidate.estimate, tiers)).append("\n");
  }
  if (question.collective != Collective::barrier) text += cut_text(choice.cut, config) + "\n";
  text += "tiers, with the constants of their slowest links:\n";
  for (const TierFacts& facts : report.facts()) text += text_of(facts);
  if (live != nullptr && live->sites.links.sites() > 1)
    text += text_of(live->sites) + "; " + rate_text(live->sites, live->rate_version) + "\n";
  if (const std::string ring = text_of(costs.ring); !ring.empty()) text += ring + "\n";
  text += constants_text(tiers, costs);
  text.append(remark).append("\n");
  if (graph != nullptr && !graph->unused_tuning.empty()) text += graph->unused_tuning + "\n";
  if (graph != nullptr && !graph->notes.empty()) text += "guessed or not found: " + graph->notes + "\n";
  if (question.crowding > 1) {
    std::snprintf(line, sizeof line, "%.3g ranks for each core: the estimates include that they take turns\n", question.crowding);
    text += line;
  }
  return text;
}

void add_estimate(JsonWriter& json, const Estimate& estimate, const Tiers& tiers) {
  json.key("seconds").number(estimate.seconds);
  json.key("memory_bytes").number(estimate.memory_bytes).key("memory_seconds").number(estimate.memory_seconds);
  json.key("step_seconds").number(estimate.step_seconds);
  json.key("tiers").open('[');
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const TierEstimate& on = estimate.tiers[static_cast<std::size_t>(tier)];
    json.open('{').key("tier").value(kind_name(tiers, tier)).key("hops").number(on.hops);
    json.key("latency_seconds").number(on.latency_seconds).key("wire_bytes").number(on.wire_bytes);
    json.key("wire_seconds").number(on.wire_seconds).key("messages").number(on.messages);
    json.key("message_seconds").number(on.message_seconds).close('}');
  }
  json.close(']');
}

std::string as_json(const Report& report) {
  const auto& [question, tiers, costs, choice, remark, config, live, graph] = report;
  JsonWriter json;
  json.open('{').key("collective").value(name_of(question.collective)).key("part_bytes").number(question.bytes);
  json.key("ranks").number(static_cast<std::uint64_t>(question.ranks));
  json.key("tiers").number(static_cast<std::uint64_t>(tiers.count())).key("ranks_a_core").number(question.crowding);
  if (const std::string ignored = pin_ignored(question, choice); !ignored.empty()) json.key("pin_ignored").value(ignored);
  if (const std::optional<PinCost> pin = cost_of_pin(question, choice)) {
    json.key("pin").open('{').key("algorithm").value(question.pin).key("seconds").number(pin->seconds);
    json.key("best").value(pin->best->name(question)).key("best_seconds").number(pin->best->estimate.seconds).close('}');
  }
  json.key("chosen")
      .value(choice.algorithm->name)
      .key("codec")
      .value(codec_name(choice.codec))
      .key("slice_bytes")
      .number(choice.cut.slice_bytes);
  json.key("slots")
      .number(std::uint64_t{choice.cut.depth})
      .key("constants")
      .value(name_of(costs.source))
      .key("order")
      .value(choice.cut.order == StepOrder::readiness ? "readiness" : "skewed")
      .key("candidates")
      .open('[');
  for (const Candidate& candidate : choice.candidates) {
    json.open('{').key("algorithm").value(candidate.algorithm->name);
    json.key("codec").value(codec_name(candidate.coded_tiers == 0 ? std::uint8_t{0} : question.codec));
    if (candidate.has_estimate()) add_estimate(json, candidate.estimate, tiers);
    json.key("verdict").value(verdict(candidate, choice, tiers)).close('}');
  }
  json.close(']').key("links").open('[');
  for (const TierFacts& facts : report.facts()) add_facts(json, facts);
  json.close(']');
  if (!costs.ring.order.empty()) {
    json.key("site_ring").open('[');
    for (const int site : costs.ring.order) json.number(static_cast<std::uint64_t>(site));
    json.close(']');
  }
  if (live != nullptr) json.key("sites").value(text_of(live->sites)).key("rate_version").number(live->rate_version);
  if (graph != nullptr) json.key("guessed").value(graph->notes).key("unused_tuning").value(graph->unused_tuning);
  json.close('}');
  return std::move(json).text();
}

Result<std::string> text_of(const Question& question, const Tiers& tiers, const CostModel& costs, ReportFormat format,
                            std::string_view remark, const Config& config) {
  SETO_ASSIGN(const Choice choice, chosen(question, tiers, costs, config));
  const Report report{question, tiers, costs, choice, remark, config, nullptr, nullptr};
  return format == ReportFormat::text ? as_text(report) : as_json(report);
}

}  // namespace

std::string constants_text(const Tiers& tiers, const CostModel& costs) {
  std::string text = std::string(name_of(costs.source)) + " constants:";
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const TierCost& cost = costs.of(tiers.kind(tier));
    const bool kept =
        costs.source == CostSource::measured && tiers.kind(tier) == TierKind::node && costs.has_shipped(TierKind::node);
    char one[160];
    std::snprintf(one, sizeof one, "%s %s %.3g us, %.3g GB/s, %.3g us for a message at each end%s", tier == 0 ? "" : ";",
                  kind_name(tiers, tier).data(), cost.latency_seconds * 1e6, cost.bytes_per_second * 1e-9,
                  cost.message_seconds * 1e6, kept ? " (shipped: the machine was too busy)" : "");
    text += one;
  }
  return text;
}

double crowding_here(const Tiers& tiers) {
  const int on_a_node = tiers.kind(0) == TierKind::node ? tiers.size(0) : 1;
  return std::max(1.0, static_cast<double>(on_a_node) / usable_cores());
}

Result<std::string> explain(Question question, const Tiers& tiers, const CostModel& costs, ReportFormat format,
                            const Config& config) {
  question.crowding = question.deterministic ? 1 : crowding_here(tiers);
  const bool shipped = costs.source == CostSource::shipped || costs.source == CostSource::expected;
  return text_of(question, tiers, costs, format, shipped ? "; a communicator measures its own, or reads SETO_TUNING_FILE" : "",
                 config);
}

Result<std::string> explain_graph(Question question, const GraphFacts& graph, ReportFormat format, const Config& config) {
  question.crowding = question.deterministic ? 1 : graph.crowding;
  SETO_ASSIGN(const Choice choice, chosen(question, graph.tiers, graph.costs, config));
  const Report report{question, graph.tiers, graph.costs, choice, "; for each tier its origin stands above",
                      config,   nullptr,     &graph};
  return format == ReportFormat::text ? as_text(report) : as_json(report);
}

Question question_on(const Communicator& communicator, Question question) {
  question.ranks = communicator.ranks();
  question.pin = communicator.config().algorithm;
  question.deterministic = communicator.config().deterministic;
  question.crowding = question.deterministic ? 1 : communicator.ranks_a_core();
  return question;
}

Result<std::string> explain_on(const Communicator& communicator, const Question& question, ReportFormat format) {
  const RateVersions::Known known = communicator.rates().known();
  const Sites sites = communicator.sites();
  SETO_ASSIGN(const Choice choice, chosen(question, communicator.tiers(), known.costs, communicator.config()));
  const LiveFacts live{sites, known.version};
  const Report report{question, communicator.tiers(), known.costs, choice, "", communicator.config(), &live, nullptr};
  return format == ReportFormat::text ? as_text(report) : as_json(report);
}

Result<Question> of_size(Question question, std::uint64_t bytes, std::string_view setting, const Tiers& tiers,
                         const CostModel& costs) {
  question.bytes = part_bytes(question.collective, bytes, question.ranks);
  if (setting.empty()) {
    allow_link_codec(question, ReduceOp::sum, tiers, costs);
    return question;
  }
  SETO_ASSIGN(const CodecSetting codec, CodecSetting::parse(setting));
  allow_codec(question, ReduceOp::sum, codec, tiers);
  return question;
}

Result<Collective> collective_of(std::string_view name) {
  std::vector<std::string_view> known;
  for (int value = 0; value < kCollectiveCount; ++value) {
    const auto collective = static_cast<Collective>(value);
    if (name == name_of(collective)) return collective;
    known.push_back(name_of(collective));
  }
  return failure(Code::invalid_argument, "collective: '%.64s' is unknown; the collectives are %s", std::string(name).c_str(),
                 listed(known, name).c_str());
}

std::uint64_t part_bytes(Collective collective, std::uint64_t bytes, int ranks) {
  return has_parts(collective) ? bytes / static_cast<std::uint64_t>(ranks) : bytes;
}

}  // namespace seto
