#include "transports/tcp/flow/route_flow.h"

#include <algorithm>
#include <utility>

namespace seto::tcp {
namespace {

// A route whose rate is unknown is tried where so many round trips are short. Else each short call would wait for a route that
// may be slow, and end before its rate is known.
constexpr double kRoundTripsToTry = 1.5;

// Seconds until the last of these bytes arrives.
double arrival(const RouteOffer& route, double bytes) {
  if (route.rate <= 0) return kRoundTripsToTry * route.round_trip_us * 1e-6;
  return route.busy_s + bytes / route.rate + route.round_trip_us * 0.5e-6;
}

}  // namespace

void RouteFlow::begin(std::uint32_t its_round_trip_us) {
  round_trip_us = its_round_trip_us;
  if (sampler != nullptr) sampler = std::make_unique<RateSampler>(sockets, round_trip_us);
  if (flight != nullptr) flight = std::make_unique<FlightLimit>(round_trip_us);
  beyond_loss = busy_until_ns = 0;
  held_back = was_held_back = ran_dry = was_empty = false;
}

// The limit of bytes in flight measures whenever a queue or the limit itself shows that the link is full. The sampler needs full
// looks one after another, which calls of a few round trips rarely give: it serves links without a limit.
double RouteFlow::rate() const {
  if (sampler == nullptr) return 0;
  const bool by_limit = flight != nullptr && flight->measurements() >= kMeasurementsNeeded;
  return by_limit ? flight->measured() : sampler->rate();
}

std::uint64_t RouteFlow::trial() const {
  const auto carried = static_cast<std::uint64_t>(sampler == nullptr ? 0 : sampler->carried());
  return std::max(kTrialBytes, 2 * carried * round_trip_us / 1'000'000);
}

void RouteFlow::begin_flush(std::uint64_t now) {
  now_ns = now;
  in_flight = carriers = dry = 0;
}

void RouteFlow::decide_room() {
  // Sockets that this link has held back are dry by its own wish.
  if (carriers > 0 && 2 * dry >= carriers && !held_back) ran_dry = true;
  in_flight -= std::min(in_flight, beyond_loss);
  // The rate may have been too low when the route took its frames.
  if (const double known = rate(); is_limited() && known > 0)
    busy_until_ns = std::min(busy_until_ns, now_ns + static_cast<std::uint64_t>(static_cast<double>(in_flight) * 1e9 / known));
  room = !used ? 0 : !is_limited() ? kUnlimited : flight->bytes() - std::min(flight->bytes(), in_flight);
}

void RouteFlow::end_flush(bool frames_wait) {
  held_back = used && room == 0 && frames_wait;
  was_held_back = was_held_back || held_back;
}

void RouteFlow::take(std::uint64_t bytes) {
  if (room != kUnlimited) room -= std::min(room, bytes);
  in_flight += bytes;
  const double known = rate();
  if (known > 0)
    busy_until_ns = std::max(now_ns, busy_until_ns) + static_cast<std::uint64_t>(static_cast<double>(bytes) * 1e9 / known);
}

std::optional<std::size_t> route_for_next(std::span<const RouteOffer> offers, double frame, double waiting) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < offers.size(); ++i)
    if (offers[i].used && offers[i].open && (!first || arrival(offers[i], frame) < arrival(offers[*first], frame))) first = i;
  if (!first) return std::nullopt;
  for (const RouteOffer& other : offers)
    if (other.used && !other.open && other.rate > 0 && arrival(other, waiting) < arrival(offers[*first], frame))
      return std::nullopt;
  return first;
}

}  // namespace seto::tcp
