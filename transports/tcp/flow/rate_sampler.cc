#include "transports/tcp/flow/rate_sampler.h"

#include <algorithm>
#include <utility>

namespace seto::tcp {

RateSampler::RateSampler(std::size_t sockets, std::uint32_t round_trip_us)
    : interval_ns_(std::max(kIntervalNs, std::uint64_t{round_trip_us} * 1'000)), segments_(sockets) {}

std::optional<double> RateSampler::delivered(const Look& look) {
  const auto& sockets = look.sockets;
  if (sockets.size() != segments_.size()) return std::nullopt;
  double bytes = 0;
  bool known = false;
  std::uint32_t shortest_us = 0;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (!sockets[i]) continue;
    known = true;
    const std::uint32_t before = std::exchange(segments_[i], sockets[i]->segments);
    bytes += static_cast<double>(sockets[i]->segments - before) * sockets[i]->segment_bytes;
    const std::uint32_t own_us = sockets[i]->round_trip_us;
    if (own_us != 0 && (shortest_us == 0 || own_us < shortest_us)) shortest_us = own_us;
  }
  if (!known) return std::nullopt;
  round_trip_us_ = std::min(shortest_us, kLongestRoundTripUs);
  return bytes;
}

double RateSampler::median() const {
  std::array<double, kSamplesKept> sorted = kept_;
  const auto count = std::min<std::size_t>(samples_, kSamplesKept);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

double RateSampler::carried() const { return *std::max_element(carried_.begin(), carried_.end()); }

bool RateSampler::take(const Look& look) {
  const std::uint64_t passed_ns = look.now_ns - std::exchange(last_ns_, look.now_ns);
  const std::optional<double> bytes = delivered(look);
  // The time before the first look is no interval.
  if (const std::uint64_t both_ns = latest_ns_ + passed_ns; latest_ns_ != 0 && bytes && both_ns >= 2 * interval_ns_)
    carried_[looks_++ % kCarriedKept] = (static_cast<double>(latest_bytes_) + *bytes) * 1e9 / static_cast<double>(both_ns);
  latest_bytes_ = static_cast<std::uint64_t>(bytes.value_or(0));
  latest_ns_ = bytes ? passed_ns : 0;
  const auto limited = static_cast<std::size_t>(
      std::count_if(look.sockets.begin(), look.sockets.end(), [](const auto& one) { return !one || one->app_limited; }));
  const bool busy = look.held_back || 2 * (limited - look.resting) <= look.sockets.size() - look.resting;
  const bool full = bytes && !look.ran_dry && busy;
  const bool next = passed_ns < interval_ns_ + interval_ns_ / 2;
  run_ = !full ? 0 : next ? run_ + 1 : 1;
  if (run_ <= kLooksToBegin || passed_ns == 0) return false;
  const double sample = *bytes * 1e9 / static_cast<double>(passed_ns);
  if (!(sample >= kLeastRate && sample <= kLargestRate)) return false;
  kept_[samples_++ % kSamplesKept] = sample;
  if (samples_ < kSamplesNeeded) return false;
  const double figure = median();
  if (rate_ == 0 && sample > kRising * figure) return false;
  return std::exchange(rate_, figure) != figure;
}

}  // namespace seto::tcp
