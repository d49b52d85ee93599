#pragma once

#include <memory>

#include "src/base/config.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/environment.h"

namespace seto {

// Blocks until all ranks of the job that `launch` describes have joined.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, Deadline until);

}  // namespace seto
