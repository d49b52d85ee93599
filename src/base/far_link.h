#pragma once

#include <cstdint>

namespace seto {

// A link with a round trip of this or more is far: windows and sockets follow its round trip, and a loss there need not mean a
// full queue.
inline constexpr std::uint32_t kFarRoundTripUs = 1'000;

constexpr bool is_far(std::uint32_t round_trip_us) { return round_trip_us >= kFarRoundTripUs; }
constexpr bool is_far_seconds(double round_trip_seconds) { return round_trip_seconds * 1e6 >= kFarRoundTripUs; }

}  // namespace seto
