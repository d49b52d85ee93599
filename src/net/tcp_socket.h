#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/net/address.h"

namespace seto {

// TCP sockets: all descriptors are non-blocking and close-on-exec, and forked children lose them.

// Ports to listen on, limits inclusive; 0 to 0: any that is free.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};
// From the text of SETO_PORTS: "first-last", "port" or nothing.
[[nodiscard]] Result<PortRange> parse_ports(std::string_view text);

struct TcpListener {
  std::vector<PrivateFd> sockets;        // one for each address
  std::vector<SocketAddress> addresses;  // all with the same port
};

// Listens on one port at all addresses, the first of the range that is free at each. An address that has gone since it was listed
// is left out with a line in the log, unless none is left. any_address(ipv6) alone takes callers of both families.
[[nodiscard]] Result<TcpListener> listen_tcp(const std::vector<SocketAddress>& addresses, PortRange ports, int backlog);

// The next caller, non-blocking and set up by tune_tcp. Invalid: errno says why, EAGAIN that nobody waits.
[[nodiscard]] PrivateFd accept_tcp(const PrivateFd& listener);

// In two halves, for whoever tries several addresses at once: the first does not wait. The socket becomes writable when the
// attempt has ended, one way or the other, and the second says which.
[[nodiscard]] Result<PrivateFd> begin_connect(const SocketAddress& address);
[[nodiscard]] Status end_connect(const PrivateFd& fd, const SocketAddress& address);

// Both halves. Nobody listening, or no way there, is Code::remote_error; no answer until the deadline is Code::timeout.
[[nodiscard]] Result<PrivateFd> connect_tcp(const SocketAddress& address, Deadline until);
// The text of a deadline of begin_connect.
[[nodiscard]] Status no_answer(const SocketAddress& address);

// How long sent data may stay unacknowledged before the connection counts as lost. Keepalive finds a silent one in about the same
// time: 10 s idle, then 3 probes 5 s apart.
inline constexpr unsigned kUserTimeoutMs = 25'000;

// No delay, keepalive, user timeout. connect_tcp and accept_tcp have done it.
[[nodiscard]] Status tune_tcp(int fd);

[[nodiscard]] Result<SocketAddress> local_address(int fd);
[[nodiscard]] Result<SocketAddress> remote_address(int fd);

}  // namespace seto
