#pragma once

#include <cstdint>

namespace seto {

// A link with a round trip of this or more is far: windows and sockets follow its round trip, and a loss there need not mean a
// full queue.
inline constexpr std::uint32_t kFarRoundTripUs = 1'000;

constexpr bool is_far(std::uint32_t round_trip_us) { return round_trip_us >= kFarRoundTripUs; }
constexpr bool is_far_seconds(double round_trip_seconds) { return round_trip_seconds * 1e6 >= kFarRoundTripUs; }

// Whether a turn of work moved something, and over which links.
struct Moved {
  bool near = false;
  bool far = false;

  explicit operator bool() const { return near || far; }
  Moved& operator|=(const Moved& other) {
    near = near || other.near;
    far = far || other.far;
    return *this;
  }
};

// The facts from which the number of sockets between two ranks follows.
struct SocketNeed {
  double bytes_per_second = 0;         // of the link; 0: unknown
  double round_trip_s = 0;             // 0: unknown
  double socket_bytes_per_second = 0;  // what one socket carries; 0: what the kernel's send buffer lets it carry
  std::uint32_t sharers = 1;           // pairs of ranks that send over the link side by side: the ranks of its larger end
};
inline constexpr std::uint32_t kMostSocketsOfAPair = 16;

// The sockets that carry the share of two ranks in a link. Pure: connections, seto explain and seto plan simulate use it alike.
[[nodiscard]] std::uint32_t sockets_for(const SocketNeed& need);

}  // namespace seto
