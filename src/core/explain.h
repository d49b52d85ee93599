#pragma once

#include <string>

#include "src/core/communicator/communicator.h"
#include "src/core/choice/planner.h"

namespace seto {

enum class ReportFormat : std::uint8_t { text, json };

// A made-up communicator: ranks spread evenly over nodes, nodes over sites.
Result<Tiers> made_up_tiers(int ranks, int nodes, int sites);

// How the choice for a made-up communicator falls: every candidate, its time, why it lost. Its machines have as many usable
// cores as this one.
Result<std::string> explain(Question question, const Tiers& tiers, const CostModel& costs, ReportFormat format);

// The same for a communicator that is there: `bytes` of the size column.
Result<std::string> explain_on(const Communicator& communicator, Question question, std::uint64_t bytes, ReportFormat format);

// "measured constants: node 0.25 us, 15 GB/s", for each tier there is.
std::string constants_text(const Tiers& tiers, const CostModel& costs);

Result<Collective> collective_of(std::string_view name);

// Bytes of one part of a collective whose size column says `bytes`.
std::uint64_t part_bytes(Collective collective, std::uint64_t bytes, int ranks);

}  // namespace seto
