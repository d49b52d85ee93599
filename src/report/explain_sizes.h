#pragma once

#include <string>
#include <string_view>

#include "src/base/json_writer.h"
#include "src/core/choice/planner.h"

namespace seto {

// The ranks and constants for which sizes are compared.
struct SizesInput {
  const Tiers& tiers;
  const CostModel& costs;
  std::string_view codec;  // a text as of SETO_CODEC
};

// The candidate that is chosen for each size, the first one doubled up to the last one, and where one candidate takes over from
// another. Sizes are those of the size column of the benchmarks.
Result<std::string> explain_sizes(const Question& question, std::uint64_t first, std::uint64_t last, const SizesInput& input,
                                  ReportFormat format);

}  // namespace seto
