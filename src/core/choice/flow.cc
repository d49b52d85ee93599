#include "src/core/choice/flow.h"

#include <algorithm>
#include <cmath>

#include "src/base/far_link.h"

namespace seto {
namespace {

constexpr double kSmallestWindow = 4 << 20;
// The window holds two round trips, because credit returns half a window at a time, one round trip after the bytes were read.
constexpr double kRoundTripsAWindow = 2;

// A receiver reserves a window for two operations of each stream, as long as its communicator lives. With an eighth of the memory
// four streams of a peer have room: if the first one took everything, the next would have 4 MiB, which is 70 MB/s at 60 ms.
constexpr std::uint64_t kUnknownWindowsAMemory = 8;

constexpr double kMostSockets = 16;
constexpr std::uint32_t kSocketsOfAnUnknownLongLink = 8;  // at 4 MiB a round trip of 60 ms each they carry 4 Gbit/s

// A call is delayed by one slice for each hop, so a slice should be short against a round trip. Every slice costs its
// synchronisation, so it should not be shorter than a sixteenth.
constexpr double kSlicesARoundTrip = 16;
constexpr double kSmallestSlice = 256 << 10;
constexpr double kLargestSlice = 4 << 20;
constexpr std::uint64_t kSliceOfAnUnknownLink = 512 << 10;

double between(double low, double value, double high) { return std::max(low, std::min(value, high)); }

}  // namespace

std::uint64_t slice_of(double bytes_per_second, double round_trip_s) {
  return static_cast<std::uint64_t>(between(kSmallestSlice, bytes_per_second * round_trip_s / kSlicesARoundTrip, kLargestSlice));
}

Flow flow_of(const LinkFacts& link, std::uint64_t memory_limit) {
  const double rate = link.bytes_per_second.value_or(0);
  const double round_trip_s = link.round_trip_s.value_or(0);
  const bool is_long = is_far_seconds(round_trip_s);
  Flow flow;
  // In the skewed order a rank stops at the first message that is not there: each round of slices then takes a round trip.
  flow.order = is_long ? StepOrder::readiness : StepOrder::skewed;
  if (!(rate > 0)) {
    flow.window_bytes = memory_limit / kUnknownWindowsAMemory;
    flow.sockets = is_long ? kSocketsOfAnUnknownLongLink : 1;
    flow.slice_bytes = kSliceOfAnUnknownLink;
    return flow;
  }
  const double round_trip_bytes = rate * round_trip_s;
  const auto limit = static_cast<double>(memory_limit);
  flow.window_bytes =
      static_cast<std::uint64_t>(std::min(limit, std::max(kSmallestWindow, kRoundTripsAWindow * round_trip_bytes)));
  flow.slice_bytes = slice_of(rate, round_trip_s);
  if (const double socket_rate = link.socket_bytes_per_second.value_or(0); socket_rate > 0)
    flow.sockets = static_cast<std::uint32_t>(between(1, std::ceil(rate / socket_rate), kMostSockets));
  else
    flow.sockets = is_long ? kSocketsOfAnUnknownLongLink : 1;
  return flow;
}

}  // namespace seto
