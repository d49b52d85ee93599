#pragma once

#include "src/bootstrap/bootstrap.h"
#include "src/core/communicator/communicator.h"

namespace seto {

// The constants that all ranks of a new communicator choose by: read from a file, shipped, known to all of them from an earlier
// communicator of their contexts, or measured now, by one pair of ranks for each tier while the others sleep in the bootstrap.
// Ranks that want different things are told so. Called by all ranks, when messages between them can flow.
Result<CostModel> agree_on_costs(Communicator& communicator, Bootstrap& bootstrap, Deadline until);

}  // namespace seto
