#include "src/core/explain.h"

#include <algorithm>
#include <cstdio>

#include "src/base/text.h"
#include "src/core/call/collective_call.h"
#include "src/core/connect/context.h"
#include "src/core/json.h"
#include "src/core/call/ids.h"

namespace seto {
namespace {

std::string duration(double seconds) {
  char text[32];
  if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  else if (seconds < 1)
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

bool is_chosen(const Candidate& candidate, const Choice& choice) {
  return candidate.algorithm == choice.algorithm && candidate.coded_tiers == choice.coded_tiers;
}

std::string verdict(const Candidate& candidate, const Choice& choice) {
  if (is_chosen(candidate, choice)) return "chosen";
  if (!candidate.refused.empty()) return candidate.refused;
  double best = 0;
  for (const Candidate& other : choice.candidates)
    if (is_chosen(other, choice)) best = other.seconds;
  char text[64];
  std::snprintf(text, sizeof text, "%.2f times the time of the chosen one", candidate.seconds / best);
  return text;
}

// "all_reduce, 64M", "all_gather, parts of 16M", "barrier"
std::string call_text(const Question& question) {
  const std::string name(name_of(question.collective));
  if (question.collective == Collective::barrier) return name;
  return name + (has_parts(question.collective) ? ", parts of " : ", ") + size_text(question.bytes);
}

// Why the pinned algorithm is not the one that was chosen; empty if it is, or none is pinned.
std::string pin_ignored(const Question& question, const Choice& choice) {
  if (question.pin.empty() || choice.algorithm->name == question.pin) return {};
  std::string_view refused;
  for (const Candidate& candidate : choice.candidates)
    if (candidate.algorithm->name == question.pin) refused = candidate.refused;
  const std::string why = refused.empty() ? std::string(name_of(question.collective)) + " has none"
                                          : "it is impossible here (" + std::string(refused) + ")";
  return std::string(question.pin) + " is pinned, but " + why + ": chosen freely";
}

// What is reported. The remark is on the constants.
struct Report {
  const Question& question;
  const Tiers& tiers;
  const CostModel& costs;
  const Choice& choice;
  std::string_view remark;
};

std::string as_text(const Report& report) {
  const auto& [question, tiers, costs, choice, remark] = report;
  char line[256];
  std::string text = call_text(question) + ", " + std::to_string(question.ranks) +
                     (question.ranks == 1 ? " rank, " : " ranks, ") + std::to_string(tiers.count()) +
                     (tiers.count() == 1 ? " tier\n" : " tiers\n");
  int widest = 20;
  for (const Candidate& candidate : choice.candidates)
    widest = std::max(widest, static_cast<int>(candidate.name(question).size()));
  std::snprintf(line, sizeof line, "  %-*s %14s  %s\n", widest, "algorithm", "estimate", "verdict");
  text += line;
  for (const Candidate& candidate : choice.candidates) {
    std::snprintf(line, sizeof line, "%s %-*s %14s  %s\n", is_chosen(candidate, choice) ? "*" : " ", widest,
                  candidate.name(question).c_str(), candidate.refused.empty() ? duration(candidate.seconds).c_str() : "-",
                  verdict(candidate, choice).c_str());
    text += line;
  }
  if (const std::string ignored = pin_ignored(question, choice); !ignored.empty()) text += ignored + "\n";
  if (question.collective != Collective::barrier)
    text += "slices of " + size_text(choice.cut.slice_bytes) + ", " + std::to_string(choice.cut.depth) + " in flight\n";
  text += constants_text(tiers, costs);
  text.append(remark).append("\n");
  if (question.crowding > 1) {
    std::snprintf(line, sizeof line, "%.3g ranks a core: they take turns, which is counted\n", question.crowding);
    text += line;
  }
  return text;
}

std::string as_json(const Report& report) {
  const auto& [question, tiers, costs, choice, remark] = report;
  JsonWriter json;
  json.open('{').key("collective").value(name_of(question.collective)).key("part_bytes").number(question.bytes);
  json.key("ranks").number(static_cast<std::uint64_t>(question.ranks));
  json.key("tiers").number(static_cast<std::uint64_t>(tiers.count())).key("ranks_a_core").number(question.crowding);
  if (const std::string ignored = pin_ignored(question, choice); !ignored.empty()) json.key("pin_ignored").value(ignored);
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
      .key("candidates")
      .open('[');
  for (const Candidate& candidate : choice.candidates) {
    json.open('{').key("algorithm").value(candidate.algorithm->name);
    json.key("codec").value(codec_name(candidate.coded_tiers == 0 ? std::uint8_t{0} : question.codec));
    if (candidate.refused.empty()) json.key("seconds").number(candidate.seconds);
    json.key("verdict").value(verdict(candidate, choice)).close('}');
  }
  json.close(']').close('}');
  return std::move(json).text();
}

Result<std::string> text_of(const Question& question, const Tiers& tiers, const CostModel& costs, ReportFormat format,
                            std::string_view remark) {
  SETO_ASSIGN(const Choice choice, choose(question, tiers, costs));
  const Report report{question, tiers, costs, choice, remark};
  return format == ReportFormat::text ? as_text(report) : as_json(report);
}

}  // namespace

std::string constants_text(const Tiers& tiers, const CostModel& costs) {
  static constexpr const char* kKinds[] = {"node", "site", "world"};
  std::string text = std::string(name_of(costs.source)) + " constants:";
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const TierCost& cost = costs.of(tiers.kind(tier));
    char one[96];
    std::snprintf(one, sizeof one, "%s %s %.3g us, %.3g GB/s", tier == 0 ? "" : ";",
                  kKinds[static_cast<std::size_t>(tiers.kind(tier))], cost.latency_seconds * 1e6, cost.bytes_per_second * 1e-9);
    text += one;
  }
  return text;
}

Result<Tiers> made_up_tiers(int ranks, int nodes, int sites) {
  if (ranks < 1 || ranks > kBootstrapRankLimit)
    return failure(Code::invalid_argument, "ranks: %d is not one of 1 to %d", ranks, kBootstrapRankLimit);
  if (nodes < 1 || nodes > ranks || ranks % nodes != 0)
    return failure(Code::invalid_argument, "nodes: %d ranks cannot be spread evenly over %d nodes", ranks, nodes);
  if (sites < 1 || sites > nodes || nodes % sites != 0)
    return failure(Code::invalid_argument, "sites: %d nodes cannot be spread evenly over %d sites", nodes, sites);
  std::vector<Home> homes;
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / (ranks / nodes);
    homes.push_back({static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(node / (nodes / sites))});
  }
  return Tiers::of(homes);
}

Result<std::string> explain(Question question, const Tiers& tiers, const CostModel& costs, ReportFormat format) {
  const int on_a_node = tiers.kind(0) == TierKind::node ? tiers.size(0) : 1;
  question.crowding = std::max(1.0, static_cast<double>(on_a_node) / usable_cores());
  const bool shipped = costs.source == CostSource::shipped;
  return text_of(question, tiers, costs, format, shipped ? "; a communicator measures its own, or reads SETO_TUNING_FILE" : "");
}

Result<std::string> explain_on(const Communicator& communicator, Question question, std::uint64_t bytes, ReportFormat format) {
  question.ranks = communicator.ranks();
  question.bytes = part_bytes(question.collective, bytes, question.ranks);
  question.pin = communicator.config().algorithm;
  question.crowding = communicator.ranks_a_core();
  question.deterministic = communicator.config().deterministic;
  SETO_ASSIGN(const CodecSetting setting, CodecSetting::parse(communicator.config().codec));
  allow_codec(question, ReduceOp::sum, setting, communicator.tiers());
  return text_of(question, communicator.tiers(), communicator.costs(), format, "");
}

Result<Collective> collective_of(std::string_view name) {
  std::vector<std::string_view> known;
  for (int value = 0; value < kCollectiveCount; ++value) {
    const auto collective = static_cast<Collective>(value);
    if (name == name_of(collective)) return collective;
    known.push_back(name_of(collective));
  }
  return failure(Code::invalid_argument, "collective: '%.64s' is none; there are %s", std::string(name).c_str(),
                 listed(known, name).c_str());
}

std::uint64_t part_bytes(Collective collective, std::uint64_t bytes, int ranks) {
  return has_parts(collective) ? bytes / static_cast<std::uint64_t>(ranks) : bytes;
}

}  // namespace seto
