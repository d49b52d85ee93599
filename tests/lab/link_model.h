#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/lab/segments.h"

namespace seto::lab {

// Gilbert-Elliott: two states, each segment may change between them, and the bad one loses.
struct BurstLoss {
  double enter = 0;  // chance of good -> bad
  double leave = 1;  // chance of bad -> good
  double loss = 1;   // chance of a loss in the bad state
};

// One direction between two sites.
struct LinkSettings {
  double rate = 0;  // bits of IP (and overhead) in a second; 0: no limit
  Nanoseconds delay = 0;
  Nanoseconds jitter = 0;  // up to so much more, evenly spread; nothing overtakes
  double loss = 0;         // chance for each segment
  BurstLoss burst_loss{};
  std::optional<std::uint64_t> queue_bytes =
      std::nullopt;                // tail drop above; unset: twice the delay at the rate, 256 KiB at least
  std::uint64_t bucket_bytes = 0;  // what an idle link saves up and then sends at once
  std::uint32_t overhead = 0;      // bytes of framing that each segment costs besides
  bool cut = false;                // the cable: what is on its way is lost too
  bool hole = false;               // a router that forgets: what enters is lost without a word
};

[[nodiscard]] std::uint64_t queue_limit(const LinkSettings& settings);

struct LinkCounters {
  std::uint64_t packets = 0, segments = 0, bytes = 0;  // offered
  std::uint64_t passed_segments = 0, passed_bytes = 0;
  std::uint64_t lost = 0;       // segments, by chance
  std::uint64_t overflow = 0;   // segments that found the queue full
  std::uint64_t swallowed = 0;  // segments, by a cut or a hole
  double most_backlog = 0;      // bytes
};

// Decides for each segment whether it arrives and when. Pure: time comes from the caller, chance from the seed.
class LinkModel final {
 public:
  LinkModel(const LinkSettings& settings, std::uint64_t seed) : settings_(settings), random_(seed) {}

  [[nodiscard]] const LinkSettings& settings() const { return settings_; }
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  // From now on; the bytes in the queue stay and leave at the new rate.
  void change(Nanoseconds now, const LinkSettings& settings);

  // Appends what survives, in the order in which it is due. `now` never decreases.
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
  double free_at_ = 0;  // when the line has sent all that it took; behind `now` by what the bucket has saved up
  Nanoseconds last_due_ = 0;
  bool in_burst_ = false;
};

}  // namespace seto::lab
