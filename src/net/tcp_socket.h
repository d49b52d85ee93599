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

// The ports to listen on, both limits included; 0 to 0: any free port.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};
// Parses SETO_PORTS: "first-last", "port" or nothing.
[[nodiscard]] Result<PortRange> parse_ports(std::string_view text);

struct TcpListener {
  std::vector<PrivateFd> sockets;        // one for each address
  std::vector<SocketAddress> addresses;  // all with the same port
};

// Listens on one port at all addresses: the first port of the range that is free at every address. An address that has
// disappeared since it was listed is skipped with a log line; fails if none remains. any_address(ipv6) alone accepts both
// families.
[[nodiscard]] Result<TcpListener> listen_tcp(const std::vector<SocketAddress>& addresses, PortRange ports, int backlog);

// Accepts the next connection, non-blocking and configured by tune_tcp. Invalid: errno says why; EAGAIN: none is pending.
[[nodiscard]] PrivateFd accept_tcp(const PrivateFd& listener);

// Connects in two steps, so that a caller can try several addresses at once. begin_connect() does not wait; the socket becomes
// writable when the attempt has ended, and end_connect() returns its result. `from`: the own address, whatever its port; null:
// the kernel's choice. `longest_segment`: of both directions, in bytes; 0: the kernel's choice.
[[nodiscard]] Result<PrivateFd> begin_connect(const SocketAddress& address, const SocketAddress* from = nullptr,
                                              int longest_segment = 0);
// Whether such an attempt failed because the host answers and no process listens there. Else there may be no way to the host.
[[nodiscard]] bool is_refusal(const Status& failed);
[[nodiscard]] Status end_connect(const PrivateFd& fd, const SocketAddress& address);

// Both steps. Code::remote_error: refused or no route. Code::timeout: no answer until the deadline.
[[nodiscard]] Result<PrivateFd> connect_tcp(const SocketAddress& address, Deadline until);
// The failure for an attempt that begin_connect started and that has not ended at the deadline.
[[nodiscard]] Status no_answer(const SocketAddress& address);

// How long sent data may stay unacknowledged before the connection counts as lost. Keepalive detects a silent connection in about
// the same time: 10 s idle, then 3 probes 5 s apart.
inline constexpr unsigned kUserTimeoutMs = 25'000;

// Sets no-delay, keepalive, user timeout and the mark of control traffic. connect_tcp and accept_tcp call it.
[[nodiscard]] Status tune_tcp(int fd);

[[nodiscard]] Result<SocketAddress> local_address(int fd);
[[nodiscard]] Result<SocketAddress> remote_address(int fd);

}  // namespace seto
