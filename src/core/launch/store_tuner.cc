#include "src/core/launch/store_tuner.h"

#include <algorithm>

namespace seto {
namespace {

constexpr std::uint32_t kTriesEach = 2;      // the first call of a way is slower because of cold slots
constexpr std::uint32_t kBetweenLooks = 24;  // calls between two trials of another way
constexpr double kNewest = 0.4;
// Other programs make single calls longer by any factor. Counted in full, one such call would hide the fastest way for hundreds
// of calls: it is looked at once in 48.
constexpr double kMostOfACall = 2;

constexpr StoreTuner::Way kWaysInOrder[] = {
    {Store::past_cache, Store::cached},
    {Store::cached, Store::cached},
    {Store::past_cache, Store::past_cache},
    {Store::cached, Store::past_cache},
};

}  // namespace

StoreTuner::StoreTuner(std::uint64_t bytes, SlotStore slots, const StoreTuner* half, const StoreSizes& sizes) {
  for (Way way : kWaysInOrder) {
    if (way.results == Store::past_cache && bytes < sizes.beyond_cache) continue;
    if (slots != SlotStore::automatic && (way.slots == Store::cached) != (slots == SlotStore::cached)) continue;
    way.index = ways_;
    way_[ways_++] = way;
  }
  if (bytes >= sizes.beyond_every_cache) half_ = half;
}

// Beyond every cache all sizes behave alike, and trying all ways again would cost eight of the longest calls.
void StoreTuner::inherit() {
  if (half_->calls_ < kTriesEach * half_->ways_ || half_->ways_ != ways_) return;
  calls_ = half_->calls_;
  std::transform(half_->ticks_.begin(), half_->ticks_.end(), ticks_.begin(), [](double ticks) { return 2 * ticks; });
}

StoreTuner::Way StoreTuner::next() {
  if (calls_ == 0 && half_ != nullptr) inherit();
  const std::uint32_t call = calls_++;
  if (call < kTriesEach * ways_) return way_[call / kTriesEach];
  if (call % kBetweenLooks == 0) return way_[call / kBetweenLooks % ways_];
  return way_[static_cast<std::size_t>(std::min_element(ticks_.begin(), ticks_.begin() + ways_) - ticks_.begin())];
}

void StoreTuner::took(const Way& way, std::uint64_t ticks) {
  double& mean = ticks_[way.index];
  const auto latest = static_cast<double>(ticks);
  const bool warming = calls_ <= kTriesEach * ways_;
  const bool was_disturbed = latest < mean / kMostOfACall;  // what the mean contains
  if (mean == 0 || warming || was_disturbed)
    mean = latest;
  else
    mean += kNewest * (std::min(latest, kMostOfACall * mean) - mean);
}

}  // namespace seto
