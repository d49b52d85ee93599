#pragma once

#include <utility>

#include "src/base/fork.h"
#include "tests/support/peer_groups.h"

namespace seto::support {

// Members as threads of one process, joined by TCP over loopback, with `sockets` sockets between each two.
const PeerGroupTransport& tcp_transport(std::size_t sockets);

// The same with four sockets, and windows as over 60 ms.
const PeerGroupTransport& far_tcp_transport();
// Over encrypted sockets: one of a near link, or four of a far one.
const PeerGroupTransport& tls_transport(std::size_t sockets);

// Over three sockets as over 60 ms, each of which is cut at random bytes and made again soon.
const PeerGroupTransport& cut_transport(bool encrypted);

// Over one socket and a rail over fake RDMA devices, which breaks at random moments and is made again soon.
const PeerGroupTransport& cut_rails_transport();

// The two ends of a new TCP connection.
std::pair<PrivateFd, PrivateFd> connected_over_loopback();

}  // namespace seto::support
