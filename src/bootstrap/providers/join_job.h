#pragma once

#include <memory>

#include "src/base/config.h"
#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/init_order.h"
#include "src/bootstrap/providers/environment.h"

namespace seto {

// Waits for its turn and joins the other ranks of the job that `launch` describes: the n-th call of this process joins the n-th
// calls of the others. Blocks until all have joined, or until the deadline.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, const InitOrder& turn,
                                                          Deadline until);

}  // namespace seto
