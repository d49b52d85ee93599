#pragma once

#include <memory>
#include <vector>

#include "transports/transport.h"

namespace seto {

// All transports of a context, in the order of preference: two contexts use the first that reaches from one to the other. If the
// first one reaches all ranks of a communicator, the others are not opened for it.
[[nodiscard]] Result<std::vector<std::unique_ptr<Transport>>> make_transports(const TransportSetup& setup);

}  // namespace seto
