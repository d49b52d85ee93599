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
};

}  // namespace

StoreChoice::Way StoreChoice::next() {
  const std::uint32_t call = calls_++;
  if (call < kTriesEach * kWays) {
    now_ = static_cast<int>(call / kTriesEach);
  } else if (call % kBetweenLooks == 0) {
    now_ = static_cast<int>(call / kBetweenLooks % kWays);
  } else {
    now_ = static_cast<int>(std::min_element(ticks_.begin(), ticks_.end()) - ticks_.begin());
  }
  return kWaysInOrder[now_];
}

void StoreChoice::took(std::uint64_t ticks) {
  double& mean = ticks_[static_cast<std::size_t>(now_)];
  const auto latest = static_cast<double>(ticks);
  const bool warming = calls_ <= kTriesEach * kWays;
  mean = mean == 0 || warming ? latest : mean + kNewest * (latest - mean);
}

}  // namespace seto
