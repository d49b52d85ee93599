#pragma once

#include <span>

#include "src/core/communicator/communicator.h"

namespace seto {

// How long an operation would take by the constants that choice goes by; of one whose ranks come together. A call that would be
// rejected is a failure with the same text.
Result<double> estimated_seconds(const Communicator& communicator, const Call& call);
// The same for sends and receives that are issued as one.
Result<double> estimated_seconds(const Communicator& communicator, std::span<const Transfer> transfers);

}  // namespace seto
