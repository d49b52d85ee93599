#pragma once

#include <string>

#include "src/base/json_writer.h"
#include "src/core/choice/planner.h"
#include "src/report/graph_facts.h"

namespace seto {

class Communicator;

// Explains the choice for a hypothetical communicator with these settings: every candidate, its estimated time, and why it was
// not chosen. The machines are assumed to have as many usable cores as this one.
Result<std::string> explain(Question question, const Tiers& tiers, const CostModel& costs, ReportFormat format,
                            const Config& config = {});

// The same for an existing communicator. The question has its bytes and codec (question_on).
Result<std::string> explain_on(const Communicator& communicator, const Question& question, ReportFormat format);

// Ranks for each core of this machine, if it had the ranks of one of these nodes; at least 1.
double crowding_here(const Tiers& tiers);

// The same for ranks on the hosts of a topology file.
Result<std::string> explain_graph(Question question, const GraphFacts& graph, ReportFormat format, const Config& config = {});

// The question about a communicator: its ranks, pin and crowding. The bytes follow for each size.
Question question_on(const Communicator& communicator, Question question);

// The same question for `bytes` of the size column of the benchmarks, with the codec that is permitted for that size: by
// `setting` (a text as of SETO_CODEC), or if that is empty by the link between sites.
Result<Question> of_size(Question question, std::uint64_t bytes, std::string_view setting, const Tiers& tiers,
                         const CostModel& costs);

// "measured constants: node 0.25 us, 15 GB/s": one entry for each tier of the communicator.
std::string constants_text(const Tiers& tiers, const CostModel& costs);

Result<Collective> collective_of(std::string_view name);

// Bytes of one part of a collective whose size column shows `bytes`.
std::uint64_t part_bytes(Collective collective, std::uint64_t bytes, int ranks);

}  // namespace seto
