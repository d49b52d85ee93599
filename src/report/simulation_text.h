#pragma once

#include <string>

#include "src/report/simulation.h"

namespace seto {

// The result of a simulation, for people and for programs.
std::string simulation_text(const Simulation& simulation, const SimulationModel& model);
std::string simulation_json(const Simulation& simulation, const SimulationModel& model);

// A Gantt chart: a row for each lane of each shown rank (for each stage, where a rank has many lanes), bars for steps and for
// messages on their way.
std::string simulation_svg(const Simulation& simulation);

// "all_reduce, 64M, hierarchical in fp16, 1904 ranks"
std::string simulation_title(const Simulation& simulation);

}  // namespace seto
