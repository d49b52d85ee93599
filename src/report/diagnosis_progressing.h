#pragma once

#include <optional>

#include "src/report/job_report.h"

namespace seto {

// The diagnosis of a job whose dumps were taken one after another and show only that the job progresses. Empty if a rank has
// failed, or does not or may not progress, or if no rank is in a call while all are at the same operation.
[[nodiscard]] std::optional<Diagnosis> progressing(const DumpGroup& group);

}  // namespace seto
