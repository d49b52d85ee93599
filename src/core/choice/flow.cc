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
  flow.sockets = sockets_for({rate, round_trip_s, link.socket_bytes_per_second.value_or(0)});
  if (!(rate > 0)) {
    flow.window_bytes = memory_limit / kUnknownWindowsAMemory;
    flow.slice_bytes = kSliceOfAnUnknownLink;
    return flow;
  }
  const double round_trip_bytes = rate * round_trip_s;
  const auto limit = static_cast<double>(memory_limit);
  flow.window_bytes =
      static_cast<std::uint64_t>(std::min(limit, std::max(kSmallestWindow, kRoundTripsAWindow * round_trip_bytes)));
  flow.slice_bytes = slice_of(rate, round_trip_s);
  return flow;
}

std::uint32_t sockets_on(TierKind kind, const Tiers& tiers, const CostModel& model) {
  SocketNeed need{.round_trip_s = 2 * model.of(kind).latency_seconds};
  if (kind == TierKind::world) {
    need.socket_bytes_per_second = model.between_sites.socket_bytes_per_second.value_or(0);
    if (tiers.slowest_rate() > 0)
      need.bytes_per_second = tiers.slowest_rate();
    else if (model.source == CostSource::file)  // of a topology
      need.bytes_per_second = model.between_sites.bytes_per_second.value_or(0);
  }
  need.sharers = static_cast<std::uint32_t>(
      tiers.most_sharing(kind == TierKind::world && model.sites_are_stated ? TierKind::site : TierKind::node));
  return sockets_for(need);
}

double most_of_a_pair(const Tiers& tiers, const CostModel& model) {
  const double of_one = model.between_sites.socket_bytes_per_second.value_or(0);
  return of_one > 0 ? of_one * sockets_on(TierKind::world, tiers, model) : 0;
}

}  // namespace seto
