#pragma once

#include <memory>

#include "src/base/config.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/providers/environment.h"
#include "src/bootstrap/init_order.h"

namespace seto {

// Waits for its turn and meets the other ranks of the job that `launch` describes, in the calls that have the same number. Blocks
// until all have come, or the deadline.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, const JobTurn& turn,
                                                          Deadline until);

}  // namespace seto
