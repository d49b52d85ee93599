#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/lab/segments.h"

namespace seto::lab {

// Gilbert-Elliott: a model of two states; each segment may change the state, and segments are lost in the bad one.
struct BurstLoss {
  double enter = 0;  // probability of good -> bad
  double leave = 1;  // probability of bad -> good
  double loss = 1;   // probability of a loss in the bad state
};

// The settings of one direction between two sites, or of the uplink or downlink of a site.
struct LinkSettings {
  double rate = 0;  // bits of IP (and overhead) in a second; 0: no limit
  Nanoseconds delay = 0;
  Nanoseconds jitter = 0;  // additional delay up to this, uniformly distributed; packets keep their order
  double loss = 0;         // probability for each segment
  BurstLoss burst_loss{};
  std::optional<std::uint64_t> queue_bytes = std::nullopt;  // tail drop above; unset: queue_time at the rate, 256 KiB at least
  Nanoseconds queue_time = 0;                               // of an unset queue; 0: twice the delay
  std::uint64_t bucket_bytes = 0;                           // bytes that an idle link accumulates and then sends at once
  std::uint32_t overhead = 0;                               // bytes of framing added to each segment
  bool cut = false;                                         // a cut cable: packets in flight are lost too
  bool hole = false;                                        // a black hole: packets that enter are lost silently
  std::uint32_t largest = 0;                                // larger segments are lost silently, in bytes of IP; 0: none
  bool closed = false;                                      // a firewall: what asks for a TCP connection is lost silently
};

[[nodiscard]] std::uint64_t queue_limit(const LinkSettings& settings);

struct LinkCounters {
  std::uint64_t packets = 0, segments = 0, bytes = 0;  // offered
  std::uint64_t passed_segments = 0, passed_bytes = 0;
  std::uint64_t lost = 0;       // segments lost at random
  std::uint64_t overflow = 0;   // segments that found the queue full
  std::uint64_t swallowed = 0;  // segments, by a cut, by a hole, or because they were too large
  double most_backlog = 0;      // bytes
};

// Decides for each segment whether and when it arrives. Pure: time comes from the caller, random numbers from the seed.
class LinkModel final {
 public:
  LinkModel(const LinkSettings& settings, std::uint64_t seed) : settings_(settings), random_(seed) {}

  [[nodiscard]] const LinkSettings& settings() const { return settings_; }
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  // The time at which the line has sent everything that it accepted.
  [[nodiscard]] Nanoseconds busy_until() const { return static_cast<Nanoseconds>(free_at_); }
  // Takes effect at once; bytes in the queue stay and leave at the new rate.
  void change(Nanoseconds now, const LinkSettings& settings);

  // Appends the segments that survive, in the order of their due times. `now` never decreases.
  void offer(Nanoseconds now, const Segments& packet, std::vector<Piece>& pieces);

 private:
  enum class Fate : std::uint8_t { passes, lost, overflows, swallowed };

  [[nodiscard]] Fate fate_of(Nanoseconds now, std::uint32_t size);
  [[nodiscard]] bool is_lost();
  [[nodiscard]] double chance();
  [[nodiscard]] double backlog(Nanoseconds now) const;
  [[nodiscard]] double transmission_ns(double bytes) const;
  void close_piece(std::vector<Piece>& pieces, Piece piece);

  LinkSettings settings_;
  LinkCounters counters_;
  std::uint64_t random_;
  double free_at_ = 0;  // the time at which the line is free; before `now` by the time that the bucket has accumulated
  Nanoseconds last_due_ = 0;
  bool in_burst_ = false;
};

}  // namespace seto::lab
