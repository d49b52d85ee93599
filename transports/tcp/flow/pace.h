#pragma once

#include <algorithm>
#include <cstddef>

namespace seto::tcp {

// How fast each socket of a link may send.
struct SocketPace {
  double bytes_per_second = 0;  // 0: as fast as it can
  double most = 0;              // that the limit of its site allows; 0: there is none

  // A pace that is nearly the same may stay, if it is within the limit of the other one.
  [[nodiscard]] bool differs_from(const SocketPace& set) const {
    constexpr double kSame = 1.02;
    if (bytes_per_second == set.bytes_per_second) return false;
    if (bytes_per_second == 0 || set.bytes_per_second == 0) return true;
    const bool near = bytes_per_second < kSame * set.bytes_per_second && bytes_per_second * kSame > set.bytes_per_second;
    return !near || (most != 0 && set.bytes_per_second > most);
  }
};

// `flight_pace`: of FlightLimit, for the whole link. One socket may stand still after a loss: all but one carry the whole of it.
// `site_pace`: the share of the link in the limit of its site, which no sum of sockets may exceed, headers included; the kernel
// paces what is in the packets only. 0: no limit, for both.
inline SocketPace pace_of_socket(double flight_pace, double site_pace, std::size_t sockets) {
  // A full packet of 1500 bytes over IPv6 carries 1428.
  constexpr double kPayload = 0.95;
  SocketPace pace;
  if (site_pace > 0) pace.bytes_per_second = pace.most = std::max(1.0, kPayload * site_pace / static_cast<double>(sockets));
  if (flight_pace <= 0 || sockets < 2) return pace;
  const double each = flight_pace / static_cast<double>(sockets - 1);
  if (pace.most == 0 || each < pace.most) pace.bytes_per_second = each;
  return pace;
}

}  // namespace seto::tcp
