#include "algorithms/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace seto {

// A member with more to carry than the others can take owns nothing, and then they have less time.
std::vector<double> Shares::filled() const {
  std::vector<bool> owns(limits.size(), true);
  double seconds = 0;
  for (bool is_settled = false; !is_settled;) {
    double work = growth;
    double rate = 0;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (!owns[i]) continue;
      work += limits[i].fixed;
      rate += limits[i].rate;
    }
    seconds = work / rate;
    is_settled = true;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (!owns[i] || limits[i].fixed < seconds * limits[i].rate) continue;
      owns[i] = false;
      is_settled = false;
    }
  }
  seconds = std::max(seconds, least_seconds);
  std::vector<double> shares;
  double sum = 0;
  for (const ShareLimit& limit : limits) {
    shares.push_back(std::max(0.0, seconds * limit.rate - limit.fixed));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

double Shares::seconds(const std::vector<double>& shares) const {
  double seconds = least_seconds;
  for (std::size_t i = 0; i < limits.size(); ++i)
    seconds = std::max(seconds, (limits[i].fixed + growth * shares[i]) / limits[i].rate);
  return seconds;
}

Shares shares_of_sums(std::span<const PortRates> rates) {
  Shares shares;
  shares.growth = static_cast<double>(rates.size()) - 2;
  for (const PortRates& one : rates) {
    shares.limits.push_back({1, one.slower()});
    shares.least_seconds = std::max(shares.least_seconds, 1 / one.slower());
  }
  return shares;
}

Shares shares_from_root(std::span<const PortRates> rates, std::size_t root) {
  Shares shares;
  shares.growth = static_cast<double>(rates.size()) - 2;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    shares.limits.push_back({i == root ? 1.0 : 0.0, rates[i].up});
    shares.least_seconds = std::max(shares.least_seconds, 1 / (i == root ? rates[i].up : rates[i].down));
  }
  return shares;
}

std::vector<std::uint32_t> chunks_of_shares(const Shares& shares, const Tiers& tiers, std::uint32_t least) {
  const std::vector<double> filled = shares.filled();
  const double bound = shares.seconds(filled);
  std::vector<std::uint32_t> best;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (std::uint32_t each = least; each < least + kCutsTried && best_seconds > kNearlyFilled * bound; ++each) {
    std::vector<std::uint32_t> chunks;
    double all = 0;
    for (std::size_t i = 0; i < filled.size(); ++i) {
      const double ranks = tiers.ranks_of_member(i);
      chunks.push_back(static_cast<std::uint32_t>(std::llround(filled[i] * each * tiers.ranks() / ranks)));
      all += chunks.back() * ranks;
    }
    std::vector<double> cut;
    for (std::size_t i = 0; i < filled.size(); ++i)
      cut.push_back(static_cast<double>(chunks[i]) * tiers.ranks_of_member(i) / all);
    if (const double seconds = shares.seconds(cut); seconds < best_seconds) {
      best_seconds = seconds;
      best = std::move(chunks);
    }
  }
  return best;
}

}  // namespace seto
