#pragma once

#include <memory>

#include "src/base/config.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/environment.h"

namespace seto {

// Meets the other ranks of the job that `launch` describes; the n-th call the n-th of the others. Blocks until all have come, or
// the deadline. Calls of one rank come one after another.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, Deadline until);

}  // namespace seto
