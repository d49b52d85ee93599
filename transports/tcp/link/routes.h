#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace seto::tcp {

// As in SETO_PATHS.
inline constexpr std::size_t kMostRoutes = 4;

// The sockets of a link may lie on several routes, which are the paths of SETO_PATHS (in a link, a path is a socket): equally
// many on each, those of the best route first.
constexpr std::size_t route_of_socket(std::size_t index, std::size_t sockets, std::size_t routes) {
  const std::size_t some = std::max<std::size_t>(1, routes);
  return std::min(index / std::max<std::size_t>(1, sockets / some), some - 1);
}

// The same as ConnectRequest::path.
constexpr std::uint8_t path_to_request(std::size_t index, std::size_t sockets, std::size_t routes) {
  return routes < 2 ? 0 : static_cast<std::uint8_t>(route_of_socket(index, sockets, routes) + 1);
}

// The best of a set of routes, which has a bit for each and at least one.
constexpr std::size_t first_route(std::uint32_t routes) { return static_cast<std::size_t>(std::countr_zero(routes)); }

}  // namespace seto::tcp
