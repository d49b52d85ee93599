#pragma once

#include <cstdint>

#include "src/base/config.h"

namespace seto {

// The content of a TCP connection, for networks that treat classes of traffic differently. A connection begins as control.
enum class TrafficClass : std::uint8_t { control, data };

// The code points (DSCP) of the connections of this process, 0 to 63. kAutomatic: none.
struct TrafficMarks {
  std::uint64_t control = kAutomatic;
  std::uint64_t data = kAutomatic;
};
// For sockets that are made from now on. Any thread.
void set_traffic_marks(const TrafficMarks& marks);

// Marks what a TCP socket sends from now on, over IPv4 and IPv6. Where no class has a code point, the socket stays as it is.
void mark_traffic(int fd, TrafficClass traffic);

}  // namespace seto
