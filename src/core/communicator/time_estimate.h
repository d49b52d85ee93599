#pragma once

#include <span>

#include "src/core/communicator/communicator.h"

namespace seto {

// How long an operation would take by the cost model, if all ranks call it at the same time. A call that would be rejected fails
// with the same text.
Result<double> estimated_seconds(const Communicator& communicator, const Call& call);
// The same for sends and receives that are issued together.
Result<double> estimated_seconds(const Communicator& communicator, std::span<const Transfer> transfers);

}  // namespace seto
