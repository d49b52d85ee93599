#include "src/base/far_link.h"

#include <algorithm>
#include <cmath>

namespace seto {
namespace {

// A socket sends no faster than its send buffer allows for each round trip: 4 MiB, the kernel's usual limit, hold about 3 MB of
// payload, which is 50 MB/s at 60 ms.
constexpr double kSocketBytes = 3.1e6;

// Eight reach 3 Gbit/s at 60 ms. A near link has one: a thread moved no more over two (1 MiB took 282 us instead of 223, 64 MiB
// 18.0 ms instead of 18.6, loopback).
constexpr double kSocketsOfAnUnknownRate = 8;

// One may stand still after a loss. Where the rate is unknown, each pair has as many, however many ranks share the link, because
// a pair may use it alone.
constexpr double kFewestOfAFarLink = 2;

}  // namespace

std::uint32_t sockets_for(const SocketNeed& need) {
  const bool far = is_far_seconds(need.round_trip_s);
  const double sharers = std::max(1U, need.sharers);
  const double fewest = far ? kFewestOfAFarLink : 1;
  double of_one = need.socket_bytes_per_second;
  if (!(of_one > 0) && far) of_one = kSocketBytes / need.round_trip_s;
  double wanted = 1;
  if (need.bytes_per_second > 0 && of_one > 0)
    wanted = std::max(fewest, need.bytes_per_second / of_one) / sharers;
  else if (far)
    wanted = std::max(fewest, kSocketsOfAnUnknownRate / sharers);
  return static_cast<std::uint32_t>(std::min<double>(kMostSocketsOfAPair, std::max(1.0, std::ceil(wanted))));
}

}  // namespace seto
