#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/peer_groups.h"

namespace seto::support {

// Every transport that contexts use (make_transports), with members that are contexts of this process and connect through their
// endpoints. A new transport appears here by itself.
std::vector<std::unique_ptr<const PeerGroupTransport>> context_transports();
// Those that can open their connections on first use, doing so.
std::vector<std::unique_ptr<const PeerGroupTransport>> on_first_use_transports();

enum class Rails : std::uint8_t {
  whole,      // every context has an RDMA device, all of them fake, and rails are there before the test begins
  cut,        // they break at random moments, again and again
  but_last,   // the last context has no device
  first_use,  // connections are opened on first use, and data must go over rails at the end
  traffic,    // likewise, of connections that are there before the test begins
  shared,  // each context has two devices, and as many queue pairs as peers, so that a second rail is given up for another peer
  pulled,  // as whole; but in arm() the port of a member goes down and comes back, before it sees what has come
};
const PeerGroupTransport& rdma_transport(Rails rails);

}  // namespace seto::support
