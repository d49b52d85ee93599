#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "src/plan/channel_index.h"
#include "src/report/explain_tiers.h"
#include "src/report/simulation_text.h"
#include "src/topology/draw/svg_canvas.h"

namespace seto {
namespace {

constexpr double kLeft = 230;   // labels
constexpr double kWidth = 900;  // the time of the call
constexpr double kTop = 62;     // title, legend, axis
constexpr double kRow = 13;     // height of a row, with its gap
constexpr double kBar = 10;
constexpr double kRankGap = 20;  // with the name of the rank
constexpr double kMargin = 14;
constexpr std::size_t kMostLanes = 14;  // of a rank; ranks with more have a row for each stage
constexpr double kNarrowest = 0.7;      // pixels of a bar

enum class Kind : std::uint8_t { on_the_way, sends, sums, passes_on, stores, local };
struct Look {
  const char* fill;
  const char* name;
};
constexpr std::array<Look, 6> kLooks = {{{"#d9d9d9", "message on its way"},
                                         {"#3b6fb6", "sends"},
                                         {"#2f9e5a", "sums"},
                                         {"#8a5fb0", "receives and passes on"},
                                         {"#d08a2e", "receives into memory"},
                                         {"#777777", "copies in memory"}}};

Kind kind_of(const Program& program, const Step& step) {
  const auto is_channel = [](const Operand& operand) { return operand.space == Space::channel; };
  const auto sources = program.sources(step);
  const auto targets = program.targets(step);
  const bool receives = std::any_of(sources.begin(), sources.end(), is_channel);
  const bool sends = std::any_of(targets.begin(), targets.end(), is_channel);
  if (step.verb == Verb::reduce) return Kind::sums;
  if (receives) return sends ? Kind::passes_on : Kind::stores;
  return sends ? Kind::sends : Kind::local;
}

// "0, 1, 2 and 5 more"
std::string listed_ranks(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < 3; ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > 3) text += " and " + std::to_string(ranks.size() - 3) + " more";
  return text;
}

// "from 1, 2, 3 to 4"
std::string lane_words(const Program& program, const Step& step) {
  std::vector<Rank> senders, receivers;
  for (const Operand& source : program.sources(step))
    if (source.space == Space::channel) senders.push_back(program.channels[source.index].sender);
  for (const Operand& target : program.targets(step))
    if (target.space == Space::channel)
      for (const Rank rank : program.receivers_of(program.channels[target.index])) receivers.push_back(rank);
  std::string words;
  if (!senders.empty()) words += "from " + listed_ranks(senders);
  if (!receivers.empty()) words += (words.empty() ? "to " : " to ") + listed_ranks(receivers);
  return words.empty() ? "in memory" : words;
}

// The bars of one kind in one row. Bars that nearly touch become one, so that a call of many slices stays small.
struct Bars {
  std::vector<std::pair<double, double>> spans;  // pixels

  void add(double begin, double end) {
    if (!spans.empty() && begin - spans.back().second < kNarrowest / 2 && begin >= spans.back().first) {
      spans.back().second = std::max(spans.back().second, end);
    } else {
      spans.emplace_back(begin, end);
    }
  }
};

struct Row {
  std::string label;
  std::array<Bars, kLooks.size()> bars;
};

// The rows of one rank: its lanes, or its stages.
class RankRows final {
 public:
  explicit RankRows(const Program& program) : program_(program), by_stage_(program.lanes.size() > kMostLanes) {
    if (!by_stage_) {
      for (const Lane& lane : program.lanes) rows.push_back({lane_words(program, program.steps[lane.first_step]), {}});
      return;
    }
    std::vector<std::size_t> lanes(program.stages(), 0);
    for (const Lane& lane : program.lanes) ++lanes[program.steps[lane.first_step].stage];
    for (std::size_t stage = 0; stage < lanes.size(); ++stage)
      rows.push_back(
          {"hop " + std::to_string(stage) + ": " + std::to_string(lanes[stage]) + (lanes[stage] == 1 ? " lane" : " lanes"), {}});
  }

  void add(std::uint32_t step, Kind kind, double begin, double end) {
    const std::size_t row = by_stage_ ? program_.steps[step].stage : lane_of(program_, step);
    rows[row].bars[static_cast<std::size_t>(kind)].add(begin, end);
  }

  std::vector<Row> rows;

 private:
  const Program& program_;
  bool by_stage_;
};

std::vector<RankRows> rows_of(const Simulation& simulation) {
  std::vector<RankRows> ranks;
  for (const Program& program : simulation.programs) ranks.emplace_back(program);
  const auto index_of = [&](Rank rank) {
    return static_cast<std::size_t>(std::lower_bound(simulation.shown.begin(), simulation.shown.end(), rank) -
                                    simulation.shown.begin());
  };
  const auto at = [&](double ns) { return kLeft + kWidth * ns * 1e-9 / simulation.seconds; };
  std::vector<SimulatedMessage> messages = simulation.trace.messages;
  std::stable_sort(messages.begin(), messages.end(),
                   [](const SimulatedMessage& a, const SimulatedMessage& b) { return a.sent_ns < b.sent_ns; });
  for (const SimulatedMessage& message : messages)
    ranks[index_of(message.receiver)].add(message.step, Kind::on_the_way, at(message.sent_ns), at(message.arrived_ns));
  for (const SimulatedEvent& event : simulation.trace.steps) {
    const Program& program = simulation.programs[index_of(event.rank)];
    ranks[index_of(event.rank)].add(event.step, kind_of(program, program.steps[event.step]), at(event.begin_ns),
                                    at(event.end_ns));
  }
  return ranks;
}

// The distance of ticks: 1, 2 or 5 times a power of ten, so that there are 5 to 12 of them.
double tick_of(double seconds) {
  const double power = std::pow(10, std::floor(std::log10(seconds / 5)));
  for (const double times : {1.0, 2.0, 5.0, 10.0})
    if (seconds / (power * times) <= 12) return power * times;
  return power * 10;
}

void draw_axis(SvgCanvas& canvas, double seconds, double bottom) {
  if (!(seconds > 0)) return;
  const double tick = tick_of(seconds);
  for (int i = 0; i * tick <= seconds * (1 + 1e-9); ++i) {
    const double x = kLeft + kWidth * i * tick / seconds;
    canvas.bar({x, kTop - 6, 0.5, bottom - kTop + 6}, "#bbbbbb");
    canvas.left_text(x + 2, kTop - 8, duration_text(i * tick), false);
  }
}

void draw_legend(SvgCanvas& canvas) {
  double x = kLeft;
  for (const Look& look : kLooks) {
    canvas.bar({x, 25, 12, kBar}, look.fill);
    canvas.left_text(x + 16, 34, look.name, false);
    x += 34 + static_cast<double>(std::string_view(look.name).size()) * SvgCanvas::kLetter;
  }
}

void draw_row(SvgCanvas& canvas, const Row& row, double y) {
  canvas.left_text(kMargin + 10, y + kBar - 1, row.label.substr(0, static_cast<std::size_t>((kLeft - 30) / SvgCanvas::kLetter)),
                   false);
  for (std::size_t kind = 0; kind < kLooks.size(); ++kind)
    for (const auto& [begin, end] : row.bars[kind].spans)
      canvas.bar({begin, y, std::max(kNarrowest, end - begin), kBar}, kLooks[kind].fill);
}

}  // namespace

std::string simulation_svg(const Simulation& simulation) {
  const std::vector<RankRows> ranks = rows_of(simulation);
  double height = kTop;
  for (const RankRows& rank : ranks) height += kRankGap + static_cast<double>(rank.rows.size()) * kRow;
  SvgCanvas canvas;
  canvas.left_text(kMargin, 16, simulation_title(simulation) + ": " + duration_text(simulation.seconds), true);
  draw_legend(canvas);
  draw_axis(canvas, simulation.seconds, height);
  double y = kTop;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    canvas.left_text(kMargin, y + 14, "rank " + std::to_string(simulation.shown[i]), true);
    y += kRankGap;
    for (const Row& row : ranks[i].rows) {
      draw_row(canvas, row, y);
      y += kRow;
    }
  }
  return canvas.document(kLeft + kWidth + 60, height + kMargin);
}

}  // namespace seto
