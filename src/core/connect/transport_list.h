#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "transports/transport.h"

namespace seto {

// All transports of a context, in the order of preference: two contexts use the first that reaches from one to the other. If the
// first one reaches all ranks of a communicator, the others are not opened for it.
[[nodiscard]] Result<std::vector<std::unique_ptr<Transport>>> make_transports(const TransportSetup& setup);

// Memory of this process that its peers on the host can read where it lies (decision 41). Code::unavailable: use other memory,
// which serves as well, only slower.
[[nodiscard]] Result<void*> allocate_lendable(std::size_t size);
// Empty: it is not from allocate_lendable().
[[nodiscard]] std::optional<Status> free_lendable(void* memory);

}  // namespace seto
