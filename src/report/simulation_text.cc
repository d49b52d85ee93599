#include "src/report/simulation_text.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "src/base/json_writer.h"
#include "src/base/text.h"
#include "src/core/call/ids.h"
#include "src/report/explain_tiers.h"
#include "src/topology/draw/number_words.h"

namespace seto {
namespace {

constexpr std::size_t kMostRows = 8;  // of links of one kind, in text

// The links of one kind, the busiest first.
using LoadsByKind = std::vector<std::pair<std::string, std::vector<LinkLoad>>>;

LoadsByKind by_kind(const Simulation& simulation) {
  LoadsByKind kinds;
  for (const LinkLoad& load : simulation.loads) {
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == load.link.kind; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {load.link.kind, {}});
    kind->second.push_back(load);
  }
  for (auto& [kind, loads] : kinds)
    std::stable_sort(loads.begin(), loads.end(), [&](const LinkLoad& a, const LinkLoad& b) {
      return a.busy(simulation.seconds) > b.busy(simulation.seconds);
    });
  return kinds;
}

std::string load_text(const LinkLoad& load, double seconds) {
  char line[192];
  std::snprintf(line, sizeof line, "    %-24.48s %10s at %10s, busy %5.1f %%\n", load.link.name.c_str(),
                amount_text(load.bytes).c_str(), rate_words(load.link.bytes_per_second).c_str(), 100 * load.busy(seconds));
  return line;
}

std::string loads_text(const Simulation& simulation) {
  std::string text;
  for (const auto& [kind, loads] : by_kind(simulation)) {
    text.append("  ").append(kind).append("\n");
    const std::size_t rows = loads.size() <= kMostRows ? loads.size() : kMostRows / 2;
    for (std::size_t i = 0; i < rows; ++i) text += load_text(loads[i], simulation.seconds);
    if (rows == loads.size()) continue;
    char line[96];
    std::snprintf(line, sizeof line, "    %zu more, busy %.1f to %.1f %%\n", loads.size() - rows,
                  100 * loads.back().busy(simulation.seconds), 100 * loads[rows].busy(simulation.seconds));
    text += line;
  }
  return text.empty() ? "  none: the bytes pass through memory\n" : text;
}

const Candidate& simulated(const Simulation& simulation) {
  const Choice& choice = simulation.choice;
  return *std::find_if(choice.candidates.begin(), choice.candidates.end(), [&](const Candidate& one) {
    return one.algorithm == choice.algorithm && one.coded_tiers == choice.coded_tiers;
  });
}

}  // namespace

std::string simulation_title(const Simulation& simulation) {
  const Question& question = simulation.question;
  std::string title(name_of(question.collective));
  if (question.collective != Collective::barrier)
    title += (has_parts(question.collective) ? ", parts of " : ", ") + size_text(question.bytes);
  return title + ", " + simulated(simulation).name(question) + ", " + std::to_string(question.ranks) +
         (question.ranks == 1 ? " rank" : " ranks");
}

std::string simulation_text(const Simulation& simulation, const SimulationModel& model) {
  const Choice& choice = simulation.choice;
  std::string text = simulation_title(simulation) + "\n";
  text += "predicted: " + duration_text(simulation.seconds) + " (the first rank ends after " +
          duration_text(simulation.first_rank_seconds) +
          "; closed form: " + duration_text(simulated(simulation).estimate.seconds) + ")\n";
  text += "slices of " + size_text(choice.cut.slice_bytes) + ", " +
          (choice.cut.order == StepOrder::readiness ? "in readiness order\n" : "in skewed order\n");
  if (choice.codec != 0)
    text +=
        "numbers travel in " + std::string(codec_name(choice.codec)) +
        (simulation.question.codec_by_link ? " between sites, as in a job; SETO_CODEC=none: exact numbers\n" : " (SETO_CODEC)\n");
  text += "load of links:\n" + loads_text(simulation) + "assumed:\n";
  for (const std::string& assumption : model.assumptions) text += "  " + assumption + "\n";
  text += "  warm connections, equal starts, nothing else on the links (src/engine/simulation/README.md)\n";
  return text;
}

std::string simulation_json(const Simulation& simulation, const SimulationModel& model) {
  const Question& question = simulation.question;
  const Choice& choice = simulation.choice;
  JsonWriter json;
  json.open('{').key("collective").value(name_of(question.collective)).key("part_bytes").number(question.bytes);
  json.key("ranks").number(static_cast<std::uint64_t>(question.ranks)).key("algorithm").value(choice.algorithm->name);
  json.key("codec").value(codec_name(choice.codec)).key("slice_bytes").number(choice.cut.slice_bytes);
  json.key("order").value(choice.cut.order == StepOrder::readiness ? "readiness" : "skewed");
  json.key("seconds").number(simulation.seconds).key("first_rank_seconds").number(simulation.first_rank_seconds);
  json.key("estimate_seconds").number(simulated(simulation).estimate.seconds);
  json.key("plan_wall_seconds").number(simulation.program_seconds);
  json.key("simulation_wall_seconds").number(simulation.simulation_seconds).key("links").open('[');
  for (const LinkLoad& load : simulation.loads) {
    json.open('{').key("kind").value(load.link.kind).key("name").value(load.link.name).key("bytes").number(load.bytes);
    json.key("bytes_per_second").number(load.link.bytes_per_second).key("busy").number(load.busy(simulation.seconds)).close('}');
  }
  json.close(']').key("assumptions").open('[');
  for (const std::string& assumption : model.assumptions) json.value(assumption);
  json.close(']').close('}');
  return std::move(json).text();
}

}  // namespace seto
