#pragma once

#include <memory>
#include <vector>

#include "tests/support/peer_groups.h"

namespace seto::support {

// Every transport that contexts use (make_transports), with members that are contexts of this process and connect through their
// endpoints. A new transport appears here by itself.
std::vector<std::unique_ptr<const PeerGroupTransport>> context_transports();
// Those that can open their connections on first use, doing so.
std::vector<std::unique_ptr<const PeerGroupTransport>> on_first_use_transports();

// Contexts with an RDMA device each, all of them fake; or such whose rails break at random moments, again and again.
const PeerGroupTransport& rdma_transport(bool cut);

}  // namespace seto::support
