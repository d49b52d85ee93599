#include "transports/tcp/flow/way_choice.h"

#include <algorithm>
#include <utility>

namespace seto::tcp {

// Rates that were measured with other rails say little.
void WayChoice::look(std::size_t rails, bool sockets, std::uint64_t now_ns) {
  const bool both = rails > 0 && sockets;
  if (both != both_ || rails != rails_) {
    drop_trial();
    if (both) next_ns_ = std::min(next_ns_, ended_ns_ == 0 ? now_ns : std::max(now_ns, ended_ns_ + kLeastPauseNs));
    both_ = both;
    rails_ = rails;
  }
  give_up_slow_sample(now_ns);
}

void WayChoice::begin_trial() {
  trying_ = true;
  under_way_.resize(kMostUnderWay);
  samples_ = count_ = oldest_ = 0;
  best_ = {};
  begin_sample();
}

void WayChoice::begin_sample() {
  before_ = last_;
  bytes_ = counted_ns_ = since_ns_ = 0;
}

void WayChoice::drop_trial() {
  trying_ = false;
  next_ = chosen_;
  under_way_ = {};
}

// The first sample of a trial goes over the way that is in use, as this payload does.
void WayChoice::sent(Way way, std::uint64_t number, std::uint64_t bytes, std::uint64_t now_ns) {
  if (!trying_ && both_ && way == chosen_ && now_ns >= next_ns_) begin_trial();
  last_ = number;
  if (way == Way::sockets) last_over_sockets_ = number;
  if (!trying_) return;
  if (count_ == kMostUnderWay) {
    drop_trial();
    next_ns_ = now_ns + kLeastPauseNs;
    return;
  }
  under_way_[(oldest_ + count_++) % kMostUnderWay] = {number, static_cast<std::uint32_t>(bytes)};
  if (way != next_) before_ = number;  // the sample begins behind it
  if (since_ns_ == 0 && heard_ >= before_) since_ns_ = now_ns;
}

// Bytes that are acknowledged together with the last payload before the sample took an unknown time, so they do not count.
bool WayChoice::acknowledged(std::uint64_t all_up_to, std::uint64_t now_ns) {
  heard_ = std::max(heard_, all_up_to);
  if (!trying_) return std::exchange(has_result_, false);
  for (; count_ > 0 && under_way_[oldest_].number <= heard_; --count_) {
    if (since_ns_ != 0) bytes_ += under_way_[oldest_].bytes;
    oldest_ = (oldest_ + 1) % kMostUnderWay;
  }
  counted_ns_ = sampled_ns(now_ns);
  since_ns_ = count_ > 0 && heard_ >= before_ ? now_ns : 0;
  if (bytes_ >= kSample)
    end_sample(now_ns);
  else
    give_up_slow_sample(now_ns);
  return std::exchange(has_result_, false);
}

void WayChoice::give_up_slow_sample(std::uint64_t now_ns) {
  if (!trying_) return;
  const double best = best_[index_of(other(next_))];
  const auto expected_ns = static_cast<double>(kSample) * 1e9 / std::max(1.0, best);
  if (best > 0 && static_cast<double>(sampled_ns(now_ns)) > kMuchSlower * expected_ns) end_sample(now_ns);
}

void WayChoice::end_sample(std::uint64_t now_ns) {
  const double rate = static_cast<double>(bytes_) * 1e9 / static_cast<double>(std::max<std::uint64_t>(1, sampled_ns(now_ns)));
  double& best = best_[index_of(next_)];
  best = std::max(best, rate);
  if (++samples_ == 2 * kSamples) return end_trial(now_ns);
  next_ = other(next_);
  begin_sample();
}

void WayChoice::end_trial(std::uint64_t now_ns) {
  rates_ = best_;
  const bool changes = best_[index_of(other(chosen_))] > kGain * best_[index_of(chosen_)];
  if (changes) chosen_ = other(chosen_);
  pause_ns_ = changes || ended_ns_ == 0 ? kFirstPauseNs : std::min(2 * pause_ns_, kLongestPauseNs);
  ended_ns_ = now_ns;
  next_ns_ = now_ns + pause_ns_;
  has_result_ = true;
  drop_trial();
}

}  // namespace seto::tcp
