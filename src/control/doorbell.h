#pragma once

namespace seto {

// A packet socket between two contexts as a doorbell: its datagrams carry no meaning but "look at your counters".
// Neither blocks, allocates or raises a signal. Any thread.

// One datagram. A full queue is a success: the peer has not looked yet and will. False: the peer is gone.
[[nodiscard]] bool ring(int socket);

// Takes all that rang, so that the socket can be waited on again. False: the peer is gone.
[[nodiscard]] bool drain(int socket);

}  // namespace seto
