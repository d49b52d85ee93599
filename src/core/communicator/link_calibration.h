#pragma once

#include "src/bootstrap/bootstrap.h"
#include "src/core/communicator/communicator.h"

namespace seto {

// Returns the cost model that all ranks of a new communicator use: read from a file, shipped, known to all of them from an
// earlier communicator of their contexts, or measured now by one pair of ranks for each tier while the other ranks sleep in the
// bootstrap. Fails on all ranks if their settings differ. Called by all ranks once they can exchange messages.
Result<CostModel> agree_on_costs(Communicator& communicator, Bootstrap& bootstrap, Deadline until);

}  // namespace seto
