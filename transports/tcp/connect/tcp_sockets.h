#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/far_link.h"
#include "src/control/channel/control_channels.h"
#include "src/control/network/tcp_connector.h"

namespace seto::tcp {

// The number of sockets of a link follows from the link (src/base/far_link.h).
inline constexpr std::uint32_t kAutomaticSockets = 0;

// The sockets that a link should have, as both ends know it before they have one.
struct SocketWish {
  std::uint32_t set = kAutomaticSockets;  // by SETO_TCP_STREAMS, the larger number of both ends
  SocketNeed need{};                      // without the round trip
  Resume resume = Resume::automatic;      // SETO_RESUME, as agreed
  std::uint32_t routes = 1;               // that both ends have (SETO_PATHS)

  // A link of so many sockets continues when some or all of them break.
  [[nodiscard]] bool continues(std::uint32_t sockets, std::uint32_t round_trip_us) const;
  // The number of its sockets may change while it runs.
  [[nodiscard]] bool adapts(std::uint32_t sockets, std::uint32_t round_trip_us) const;
  // Beside so many sockets. `most`: that both ends can have. A link with rails continues, and is near: within a site.
  [[nodiscard]] std::uint32_t rails(std::uint32_t most, std::uint32_t sockets, std::uint32_t round_trip_us) const;
  // On all routes together.
  [[nodiscard]] std::uint32_t sockets(std::uint32_t round_trip_us) const;
  // Only a link that continues has sockets on several routes.
  [[nodiscard]] std::uint32_t routes_of(std::uint32_t round_trip_us) const;
};

// Off at one end wins, then on.
[[nodiscard]] Resume agree(Resume one, Resume other);

// The terms that the two ends of a link exchange over its first socket before they open more: the numbers must be equal at both
// ends.
struct LinkTerms {
  std::uint32_t sockets = kAutomaticSockets;  // as set; the result of agree() has the number to open
  std::uint32_t round_trip_us = 0;            // as the kernel measured it; 0: unknown

  // The terms of both ends: the larger number of sockets that was set, and the smaller round trip. The wish adds what both ends
  // know already.
  [[nodiscard]] static LinkTerms agree(const LinkTerms& one, const LinkTerms& other, const SocketWish& wish);
};

// One socket of a link. Blocks until the other end accepts, at most until the deadline of the request.
[[nodiscard]] Result<SecureStream> open_tcp_socket(TcpConnector& connector, const ConnectRequest& request);
// To be called at each end of a new socket.
void prepare_tcp_socket(int fd);

// The connections that make a link to a context of another host, and the control channel to its process.
struct TcpSockets {
  std::vector<SecureStream> sockets;
  std::uint32_t round_trip_us = 0;
  std::uint32_t routes = 1;
  bool adapts = false;  // as SocketWish
  std::shared_ptr<ControlChannel> channel;
};

// Opens the first socket, agrees on the terms over it, and opens all others and the control channel at once: about two handshakes
// of time, however many sockets there are (one after another, 16 sockets over 60 ms took 2.65 s). Both ends call it. Blocks at
// most until the deadline of the request. `channel`: both ends have a channel already.
[[nodiscard]] Result<TcpSockets> open_tcp_sockets(TcpConnector& connector, ControlChannels& channels, const ConnectRequest& first,
                                                  const SocketWish& wish, std::shared_ptr<ControlChannel> channel = nullptr);

}  // namespace seto::tcp
