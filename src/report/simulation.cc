#include "src/report/simulation.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <utility>

#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/base/thread.h"
#include "src/core/call/ids.h"
#include "src/engine/coding.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

constexpr std::uint32_t kGrain = 16;           // elements of a cache line
constexpr std::uint64_t kFewestUnderWay = 64;  // slices that a transport without slots lets be under way
constexpr double kMostSteps = 1e8;             // each takes some 100 ns and up to a few hundred bytes
constexpr double kRefusedAtOnce = 1.5;         // times the limit by an estimate

// Evenly spaced over all ranks, the first one included.
std::vector<Rank> shown_of(int ranks) {
  std::vector<Rank> shown;
  const int count = std::min(ranks, kMostShownRanks);
  for (int i = 0; i < count; ++i) shown.push_back(static_cast<Rank>(static_cast<std::int64_t>(i) * ranks / count));
  return shown;
}

// The programs of a plan, of one rank after another.
class ProgramMaker final {
 public:
  ProgramMaker(const Question& question, const Choice& choice, const Tiers& tiers)
      : question_(question), algorithm_(*choice.algorithm), tiers_(tiers) {
    shape_ = {question.collective, question.ranks, question.root, 1, Finish::none};
    shape_.codec = choice.codec;
    shape_.coded_tiers = choice.coded_tiers;
    shape_.pieces = algorithm_.pieces(shape_, tiers);
    const std::uint64_t chunk = question.bytes / std::max(1U, shape_.pieces);
    slices_ = std::max(1.0, static_cast<double>(chunk) / static_cast<double>(choice.cut.slice_bytes));
  }

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] Program program(Rank rank) const {
    return lower(build_program(algorithm_, shape_, tiers_, rank, InPlace::no), shape_, InPlace::no, rules_for(question_.type));
  }
  [[nodiscard]] double steps_of(const Program& program) const { return static_cast<double>(program.steps.size()) * slices_; }

  // From the root and from ranks that lie evenly among the others, which may have much less to do.
  [[nodiscard]] double estimated_steps() const {
    const double of_root = steps_of(program(question_.root));
    double others = 0;
    double counted = 0;
    for (const Rank rank : shown_of(question_.ranks)) {
      if (rank == question_.root) continue;
      others += steps_of(program(rank));
      ++counted;
    }
    return of_root + (counted > 0 ? others / counted * (question_.ranks - 1) : 0);
  }

  [[nodiscard]] Status too_many(double steps) const {
    return failure(
        Code::invalid_argument,
        "%s over %d ranks in %.0f slices has %.2g steps or more; a simulation has at most %.2g: simulate fewer ranks or "
        "bytes, or another algorithm",
        std::string(algorithm_.name).c_str(), question_.ranks, slices_, steps, kMostSteps);
  }

 private:
  const Question& question_;
  const Algorithm& algorithm_;
  const Tiers& tiers_;
  Shape shape_;
  double slices_ = 1;
};

// A plan that is much too long is refused before it takes memory, any other one where its steps pass the limit. The programs of
// the ranks do not depend on each other, so all cores make some.
Result<Plan> lowered_plan(const Question& question, const Choice& choice, const Tiers& tiers) {
  Plan plan;
  plan.name = choice.algorithm->name;
  const ProgramMaker maker(question, choice, tiers);
  plan.shape = maker.shape();
  if (const double estimated = maker.estimated_steps(); estimated > kRefusedAtOnce * kMostSteps) return maker.too_many(estimated);
  plan.programs.resize(static_cast<std::size_t>(question.ranks));
  std::atomic<double> steps{0};
  const auto make = [&](std::size_t rank, const std::atomic<bool>&) -> Status {
    try {
      Program& program = plan.programs[rank] = maker.program(static_cast<Rank>(rank));
      const double own = maker.steps_of(program);
      const double all = steps.fetch_add(own, std::memory_order_relaxed) + own;
      return all > kMostSteps ? maker.too_many(all) : Status();
    } catch (const std::bad_alloc&) {  // on a thread of its own it would end the process
      return failure(Code::unavailable, "not enough memory for the plans of %d ranks", question.ranks);
    }
  };
  SETO_TRY(side_by_side(plan.programs.size(), std::thread::hardware_concurrency(), make));
  return plan;
}

// Slices of a channel that are under way at most: slots, or what fits into a window.
std::uint32_t depth_of(const Cut& cut, TierKind widest) {
  if (widest == TierKind::node) return cut.depth;
  return static_cast<std::uint32_t>(std::max(kFewestUnderWay, cut.window_bytes / std::max<std::uint64_t>(1, cut.slice_bytes)));
}

double coded_share(const Question& question, const Choice& choice) {
  if (choice.codec == 0) return 1;
  const auto count = std::max<std::uint64_t>(1, question.bytes / size_of(question.type));
  return static_cast<double>(encoded_size(codec_of(choice.codec), count)) / static_cast<double>(count * size_of(question.type));
}

std::vector<LinkLoad> loads_of(const SimulatedOutcome& outcome, const SimulationModel& model) {
  std::vector<LinkLoad> loads;
  const auto add = [&](const NamedLink& link, double bytes) {
    if (bytes > 0) loads.push_back({link, bytes});
  };
  for (std::size_t link = 0; link < model.shared.size(); ++link) add(model.shared[link], outcome.bytes_by_shared_link[link]);
  for (const auto& [wire, bytes] : outcome.bytes_by_wire)
    if (const auto named = model.wires.find(wire); named != model.wires.end()) add(named->second, bytes);
  return loads;
}

// The reason why the pinned algorithm was not chosen.
std::string why_not_pinned(const Choice& choice, const Question& question) {
  std::vector<std::string_view> names;
  for (const Candidate& candidate : choice.candidates) {
    const std::string_view name = candidate.algorithm->name;
    if (name == question.pin) return candidate.refused;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return std::string(name_of(question.collective)) + " has no such algorithm; it has " + listed(names, question.pin);
}

}  // namespace

Result<Simulation> simulate_call(const Question& question, SimulationModel& model, Trace trace) {
  SETO_ASSIGN(Choice choice, choose(question, model.tiers, model.costs));
  if (!question.pin.empty() && choice.algorithm->name != question.pin) {
    return failure(Code::invalid_argument, "algorithm: %.64s cannot run here: %s", escaped(question.pin).c_str(),
                   why_not_pinned(choice, question).c_str());
  }
  return simulate_choice(question, std::move(choice), model, trace);
}

Result<Simulation> simulate_choice(const Question& question, Choice choice, SimulationModel& model, Trace trace) {
  const std::uint64_t begin = monotonic_ns();
  Simulation made;
  made.question = question;
  made.choice = std::move(choice);
  const Flow flow = flow_on(model.tiers.widest(), model.tiers, model.costs);
  if (model.tiers.widest() == TierKind::world) limit(model, {static_cast<double>(flow.window_bytes), flow.sockets});
  SETO_ASSIGN(const Plan plan, lowered_plan(question, made.choice, model.tiers));
  const std::uint64_t element = size_of(question.type);
  std::vector<Layout> layouts;
  for (Rank rank = 0; rank < question.ranks; ++rank)
    layouts.push_back(Layout::uniform(plan.shape, rank, question.bytes / element, kGrain));
  if (trace == Trace::kept) made.shown = shown_of(question.ranks);
  made.trace.shows = [&](Rank rank) { return std::binary_search(made.shown.begin(), made.shown.end(), rank); };
  SimulatedRun run{.plan = plan, .layouts = layouts, .machine = model.machine};
  run.element_size = static_cast<std::uint32_t>(element);
  run.coded_share = coded_share(question, made.choice);
  run.slice_length = std::max<std::uint64_t>(1, made.choice.cut.slice_bytes / element);
  run.depth = depth_of(made.choice.cut, model.tiers.widest());
  run.order = made.choice.cut.order;
  run.trace = trace == Trace::kept ? &made.trace : nullptr;
  const std::uint64_t planned = monotonic_ns();
  made.program_seconds = static_cast<double>(planned - begin) * 1e-9;
  SETO_ASSIGN(const SimulatedOutcome outcome, simulate(run));
  made.simulation_seconds = static_cast<double>(monotonic_ns() - planned) * 1e-9;
  made.trace.shows = nullptr;  // it refers to a local
  made.seconds = outcome.longest_ns() * 1e-9;
  made.first_rank_seconds = *std::min_element(outcome.finish_ns.begin(), outcome.finish_ns.end()) * 1e-9;
  made.loads = loads_of(outcome, model);
  for (const Rank rank : made.shown) made.programs.push_back(plan.programs[static_cast<std::size_t>(rank)]);
  return made;
}

}  // namespace seto
