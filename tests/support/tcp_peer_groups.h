#pragma once

#include "tests/support/peer_groups.h"

namespace seto::support {

// Members as threads of one process, joined by TCP over loopback: `sockets` between each two.
const CircleTransport& tcp_transport(std::size_t sockets);

}  // namespace seto::support
