#include "src/core/store_choice.h"

#include <algorithm>

namespace seto {
namespace {

constexpr std::uint32_t kTriesEach = 2;      // the first call of a way pays for cold slots
constexpr std::uint32_t kBetweenLooks = 24;  // calls; a look costs at most the difference of one
constexpr double kNewest = 0.4;

constexpr StoreChoice::Way kWaysInOrder[] = {
    {Store::past_cache, Store::cached},
    {Store::cached, Store::cached},
    {Store::past_cache, Store::past_cache},
    {Store::cached, Store::past_cache},
};

}  // namespace

StoreChoice::StoreChoice(std::uint64_t bytes, SlotStore slots) {
  for (const Way& way : kWaysInOrder) {
    if (way.results == Store::past_cache && bytes < kBeyondCache) continue;
    if (slots != SlotStore::automatic && (way.slots == Store::cached) != (slots == SlotStore::cached)) continue;
    way_[ways_++] = way;
  }
}

void StoreChoice::inherit(const StoreChoice& half) {
  if (half.calls_ < kTriesEach * half.ways_ || half.ways_ != ways_) return;
  calls_ = half.calls_;
  std::transform(half.ticks_.begin(), half.ticks_.end(), ticks_.begin(), [](double ticks) { return 2 * ticks; });
}

StoreChoice::Way StoreChoice::next() {
  const std::uint32_t call = calls_++;
  if (call < kTriesEach * ways_) {
    now_ = call / kTriesEach;
  } else if (call % kBetweenLooks == 0) {
    now_ = call / kBetweenLooks % ways_;
  } else {
    now_ = static_cast<std::uint32_t>(std::min_element(ticks_.begin(), ticks_.begin() + ways_) - ticks_.begin());
  }
  return way_[now_];
}

void StoreChoice::took(std::uint64_t ticks) {
  double& mean = ticks_[now_];
  const auto latest = static_cast<double>(ticks);
  const bool warming = calls_ <= kTriesEach * ways_;
  mean = mean == 0 || warming ? latest : mean + kNewest * (latest - mean);
}

}  // namespace seto
