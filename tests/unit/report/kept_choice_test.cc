// The choice of this library against the calls that ./dev bench choice --keep measured on real machines.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/core/choice/planner.h"
#include "src/report/explain.h"

namespace seto {
namespace {

constexpr double kNear = 1.10;
constexpr double kShare = 0.95;
// Within a node, where every constant is measured. Over the loopback device a rank receives from several others much faster than
// from one, which no constant says.
constexpr double kWorstWithinANode = 1.3;
// Other programs spoil some figures by more than a tenth, and the best of a dozen spoilt ones is better than it should be: two
// ranks that ran one program under two names differed by up to 0.18. So fewer points are asked for where others used the machine.
constexpr double kShareOfABusyMachine = 0.88;
constexpr double kBusy = 0.2;

struct Regret {
  std::string point;
  double ratio = 1;
  bool within_a_node = false;
};

struct Replay {
  std::vector<Regret> regrets;

  [[nodiscard]] double share_within(double ratio) const {
    const auto near = std::count_if(regrets.begin(), regrets.end(), [ratio](const Regret& one) { return one.ratio <= ratio; });
    return static_cast<double>(near) / static_cast<double>(regrets.size());
  }
  [[nodiscard]] double worst_within_a_node() const {
    double worst = 1;
    for (const Regret& one : regrets)
      if (one.within_a_node) worst = std::max(worst, one.ratio);
    return worst;
  }
  // The worst points, a line for each.
  [[nodiscard]] std::string worst(std::size_t most) const {
    std::vector<Regret> sorted = regrets;
    std::sort(sorted.begin(), sorted.end(), [](const Regret& one, const Regret& other) { return one.ratio > other.ratio; });
    std::string text;
    for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i)
      text += "\n  " + std::to_string(sorted[i].ratio) + " " + sorted[i].point;
    return text;
  }
};

Question question_of(const nlohmann::json& place, const nlohmann::json& point) {
  Question question;
  question.collective = collective_of(point["collective"].get<std::string>()).value();
  question.ranks = place["ranks"].get<int>();
  question.crowding = place["ranks_a_core"].get<double>();
  question.bytes = part_bytes(question.collective, point["bytes"].get<std::uint64_t>(), question.ranks);
  return question;
}

// The kept time of a choice. A slice that the run did not choose has a time of its own where it was measured; else the time of
// the algorithm stands for it.
double kept_time(const nlohmann::json& point, const std::string& algorithm, std::uint64_t slice) {
  const nlohmann::json& us = point["us"];
  const std::string cut = "slice=" + std::to_string(slice);
  if (algorithm == point["chosen"] && slice != point["slice_bytes"].get<std::uint64_t>() && us.contains(cut))
    return us[cut].get<double>();
  return us.contains(algorithm) ? us[algorithm].get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// How slots are filled is no choice of the planner: each rank measures it while it runs.
bool is_of_planner(const std::string& candidate) { return !candidate.starts_with("store="); }

Regret regret_of(const nlohmann::json& place, const nlohmann::json& point, const Tiers& tiers, const CostModel& costs) {
  const Choice choice = choose(question_of(place, point), tiers, costs).value();
  const std::string algorithm(choice.algorithm->name);
  double best = std::numeric_limits<double>::infinity();
  std::string name;
  for (const auto& [candidate, us] : point["us"].items())
    if (is_of_planner(candidate) && us.get<double>() < best) {
      best = us.get<double>();
      name = candidate;
    }
  const double time = kept_time(point, algorithm, choice.cut.slice_bytes);
  char text[256];
  std::snprintf(text, sizeof text, "%s %s %llu: %s in slices of %llu %.4g us, %s %.4g us",
                place["place"].get<std::string>().c_str(), point["collective"].get<std::string>().c_str(),
                point["bytes"].get<unsigned long long>(), algorithm.c_str(),
                static_cast<unsigned long long>(choice.cut.slice_bytes), time, name.c_str(), best);
  return {text, time / best, place["tier"] == "node"};
}

// `other_constants`: replace those of the run.
Replay replay(const nlohmann::json& kept, const std::string& other_constants = {}) {
  Replay found;
  for (const nlohmann::json& place : kept["places"]) {
    const int ranks = place["ranks"].get<int>();
    const bool is_node = place["tier"] == "node";
    const Tiers tiers = is_node ? Tiers::flat(ranks) : made_up_tiers(ranks, ranks, 1).value();
    std::string constants;
    for (const auto& line : place["constants"]) constants += line.get<std::string>() + "\n";
    constants += other_constants;  // a later line wins
    const CostModel costs = parse_costs(constants, CostSource::measured).value();
    for (const nlohmann::json& point : place["points"]) found.regrets.push_back(regret_of(place, point, tiers, costs));
  }
  return found;
}

std::vector<std::filesystem::path> kept_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("bench/choice/data"))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  return files;
}

TEST(KeptChoice, IsNearTheBestOnEveryMachineMeasured) {
  const std::vector<std::filesystem::path> files = kept_files();
  ASSERT_FALSE(files.empty()) << "run in the root of the sources, where bench/choice/data is";
  for (const std::filesystem::path& file : files) {
    const nlohmann::json kept = nlohmann::json::parse(std::ifstream(file));
    const Replay found = replay(kept);
    ASSERT_GE(found.regrets.size(), 100U) << file;
    for (const Regret& one : found.regrets) ASSERT_TRUE(std::isfinite(one.ratio)) << one.point;
    std::printf("%s: %.1f %% of %zu points within 10 %% of the best, %.1f %% within 30 %%%s\n", file.filename().c_str(),
                100 * found.share_within(kNear), found.regrets.size(), 100 * found.share_within(1.3), found.worst(40).c_str());
    const auto is_busy = [](const nlohmann::json& place) { return place["cores_used_by_others"].get<double>() > kBusy; };
    const bool was_busy = std::any_of(kept["places"].begin(), kept["places"].end(), is_busy);
    EXPECT_GE(found.share_within(kNear), was_busy ? kShareOfABusyMachine : kShare) << file << found.worst(20);
    EXPECT_LE(was_busy ? 1 : found.worst_within_a_node(), kWorstWithinANode) << file << found.worst(20);
  }
}

// Otherwise the figures above would say nothing about choice.
TEST(KeptChoice, IsWorseWithConstantsThatAreWrong) {
  for (const std::filesystem::path& file : kept_files()) {
    const nlohmann::json kept = nlohmann::json::parse(std::ifstream(file));
    const double right = replay(kept).share_within(kNear);
    for (const char* wrong : {"node.latency_us 500\nsite.latency_us 5000\n", "node.latency_us 0.001\nsite.latency_us 0.001\n"})
      EXPECT_LT(replay(kept, wrong).share_within(kNear), right - 0.03) << file << ": " << wrong;
  }
}

}  // namespace
}  // namespace seto
