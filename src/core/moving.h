#pragma once

#include <optional>

#include "src/core/report.h"

namespace seto {

// The verdict on a job of which dumps, taken one after another, show only that it goes on. None: something has failed, stands
// still, or may, or nobody is in a call at the same operation.
[[nodiscard]] std::optional<Verdict> moving(const Case& one);

}  // namespace seto
