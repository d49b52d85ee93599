#pragma once

#include "src/core/launch/point_to_point.h"
#include "src/core/record/flight_recorder.h"

namespace seto {

// The flight recorder's entry for sends and receives. One alone is recorded as such, several as their number and their bytes.
RecordedCall recorded(const TransferCall& call);

}  // namespace seto
