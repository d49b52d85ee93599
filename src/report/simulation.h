#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/core/choice/planner.h"
#include "src/engine/simulation/simulated_engine.h"
#include "src/plan/plan.h"
#include "src/report/simulation_model.h"

namespace seto {

// The load of a port or a shared link over the whole call.
struct LinkLoad {
  NamedLink link;
  double bytes = 0;

  // Share of the call during which the link would be busy at its full rate.
  [[nodiscard]] double busy(double seconds) const { return bytes / link.bytes_per_second / seconds; }
};

// A call that was simulated.
struct Simulation {
  Question question;
  Choice choice;  // the algorithm and the cut that were simulated
  double seconds = 0;
  double first_rank_seconds = 0;  // when the first rank ends
  std::vector<LinkLoad> loads;    // of links that carry anything: shared links first, then ports
  // For a chart; empty if no trace was asked for.
  std::vector<Rank> shown;        // the ranks of the trace
  std::vector<Program> programs;  // theirs
  SimulatedTrace trace;
  double program_seconds = 0;  // that it took to make the plan, on all cores, and to simulate it
  double simulation_seconds = 0;
};

inline constexpr int kMostShownRanks = 8;

// A trace costs memory for each step of the shown ranks, so it is kept only for a chart.
enum class Trace : std::uint8_t { none, kept };

// Simulates the algorithm that the question pins (none: the one that choice takes) on these links. A call of too many steps is
// refused with what it would need.
Result<Simulation> simulate_call(const Question& question, SimulationModel& model, Trace trace = Trace::none);

// Simulates a choice as it is, such as one that was cut into other slices. `model` gets the limits of its pairs of far ranks.
Result<Simulation> simulate_choice(const Question& question, Choice choice, SimulationModel& model, Trace trace = Trace::none);

}  // namespace seto
