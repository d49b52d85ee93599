#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "transports/tcp/flow/flight_limit.h"
#include "transports/tcp/flow/pace.h"
#include "transports/tcp/flow/rate_sampler.h"

namespace seto::tcp {

// One route of a link: what is known of it, and how much may go over it now. Only the holder of the token uses it.
struct RouteFlow {
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  static constexpr std::uint64_t kTrialBytes = 64 << 10;
  // The first measurements of the limit of bytes in flight come while sockets still find out what the link carries.
  static constexpr std::uint64_t kMeasurementsNeeded = 2;

  std::size_t sockets = 0;
  std::uint32_t round_trip_us = 0;
  std::unique_ptr<RateSampler> sampler;  // null: the link is near, or has no sockets yet
  std::unique_ptr<FlightLimit> flight;   // null: the link is near, or has at most one socket
  bool used = false;                     // frames go over it
  SocketPace pace;                       // as set last
  // Bytes that are not acknowledged, because an earlier one was lost, but have arrived: they are not on their way. Smoothed.
  std::uint64_t beyond_loss = 0;
  // When the route has sent what it has taken, at its rate. What is not acknowledged would need longer: most of that has arrived.
  std::uint64_t busy_until_ns = 0;
  // The following are of one flush.
  std::uint64_t now_ns = 0;
  std::uint64_t room = kUnlimited;  // bytes of waiting frames that it may take
  std::uint64_t in_flight = 0;      // bytes that the peer has not acknowledged; only with a limit, or of several routes in use
  std::size_t carriers = 0;         // sockets that may take frames
  std::size_t dry = 0;              // of them: the kernel has sent all of it
  bool held_back = false;           // the last flush left frames in the queue because of the limit
  // Since the last look of the sampler.
  bool was_held_back = false;
  bool ran_dry = false;    // at least half of the sockets had nothing more to send
  bool was_empty = false;  // a flush left no frame that may be sent

  // The route carries frames again, and is measured anew.
  void begin(std::uint32_t its_round_trip_us);

  [[nodiscard]] bool is_limited() const { return flight != nullptr && flight->bytes() != 0; }
  [[nodiscard]] std::uint64_t measurements() const {
    return (sampler == nullptr ? 0 : sampler->samples()) + (flight == nullptr ? 0 : flight->measurements());
  }
  // Bytes per second; 0: unknown.
  [[nodiscard]] double rate() const;
  // Bytes that it may have on its way while its rate is unknown and that of others is known: kTrialBytes, or twice what it has
  // carried in a round trip.
  [[nodiscard]] std::uint64_t trial() const;
  // It takes the next frame as far as its room says; `pressing` frames need none.
  [[nodiscard]] bool is_open(bool pressing, bool others_are_known) const {
    return pressing || (room > 0 && !(others_are_known && rate() == 0 && in_flight >= trial()));
  }

  // Before and after each socket of a flush is asked what it has.
  void begin_flush(std::uint64_t now_ns);
  void decide_room();
  void end_flush(bool frames_wait);
  // It takes a frame that waited.
  void take(std::uint64_t bytes);
  [[nodiscard]] double busy_s() const { return busy_until_ns > now_ns ? static_cast<double>(busy_until_ns - now_ns) * 1e-9 : 0; }
};

// One route as the next frame sees it.
struct RouteOffer {
  bool used = false;
  bool open = false;  // it takes the frame now
  double rate = 0;    // bytes per second; 0: unknown
  double busy_s = 0;  // until it has sent what it has taken
  double round_trip_us = 0;
};

// The route over which the next frame, of so many bytes, arrives first. None if all that waits arrives sooner over a route that
// is busy now: so a slow route takes its share of many bytes, and none of the last ones. `waiting`: bytes in the queue.
[[nodiscard]] std::optional<std::size_t> route_for_next(std::span<const RouteOffer> offers, double frame, double waiting);

}  // namespace seto::tcp
