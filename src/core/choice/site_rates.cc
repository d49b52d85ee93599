#include "src/core/choice/site_rates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace seto {
namespace {

constexpr double kLongestRoundTripSeconds = 10;

bool same_pair(const SiteLinkRate& one, const SiteLinkRate& other) { return one.from == other.from && one.to == other.to; }

const SiteLinkRate* find(const SiteLinkRates& rates, std::uint32_t from, std::uint32_t to) {
  const auto found =
      std::find_if(rates.begin(), rates.end(), [&](const SiteLinkRate& one) { return one.from == from && one.to == to; });
  return found == rates.end() ? nullptr : &*found;
}

bool is_possible(const SiteLinkRate& rate, std::uint32_t sites) {
  return rate.from < sites && rate.to < sites && rate.from != rate.to && std::isfinite(rate.bytes_per_second) &&
         rate.bytes_per_second > 0 && rate.round_trip_s >= 0 && rate.round_trip_s <= kLongestRoundTripSeconds;
}

bool replaces(const SiteLinkRate& rate, const SiteLinkRate& in_force) {
  const bool other_rate = rate.bytes_per_second > kRateRise * in_force.bytes_per_second ||
                          in_force.bytes_per_second > kRateFall * rate.bytes_per_second;
  const bool other_round_trip = rate.round_trip_s > 0 && (rate.round_trip_s > kRoundTripChange * in_force.round_trip_s ||
                                                          in_force.round_trip_s > kRoundTripChange * rate.round_trip_s);
  return other_rate || other_round_trip;
}

}  // namespace

double shorter_known(double one, double other) { return one > 0 && other > 0 ? std::min(one, other) : std::max(one, other); }

Sites with_rates(const Sites& sites, const SiteLinkRates& rates) {
  const std::uint32_t count = sites.links.sites();
  SiteLinkRates possible;
  std::copy_if(rates.begin(), rates.end(), std::back_inserter(possible),
               [count](const SiteLinkRate& one) { return is_possible(one, count); });
  Sites result = sites;
  if (possible.empty()) return result;
  const auto slowest = std::min_element(possible.begin(), possible.end(), [](const SiteLinkRate& one, const SiteLinkRate& other) {
    return one.bytes_per_second < other.bytes_per_second;
  });
  result.links = SiteLinks(count);
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const SiteLinkRate* known = find(possible, from, to);
      if (known == nullptr) known = find(possible, to, from);
      LinkFacts link = sites.links.between(from, to);
      link.bytes_per_second = known != nullptr ? known->bytes_per_second : slowest->bytes_per_second;
      if (known != nullptr && known->round_trip_s > 0) link.round_trip_s = known->round_trip_s;
      (void)result.links.add({0, from, to, link});
    }
  return result;
}

SiteLinkRates rates_of_part(const InheritedRates& parent, const Sites& part) {
  const std::uint32_t count = part.links.sites();
  std::vector<std::optional<std::uint32_t>> parent_of(count);
  for (std::size_t rank = 0; rank < part.of_rank.size() && rank < parent.site_of_rank.size(); ++rank)
    if (std::optional<std::uint32_t>& site = parent_of[part.of_rank[rank]]; !site) site = parent.site_of_rank[rank];
  SiteLinkRates rates;
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to || !parent_of[from] || !parent_of[to]) continue;
      if (const SiteLinkRate* const known = find(parent.rates, *parent_of[from], *parent_of[to]))
        rates.push_back({from, to, known->bytes_per_second, known->round_trip_s});
    }
  return rates;
}

void RateReports::add(Rank rank, const SiteLinkRate& rate, bool is_bound, std::uint64_t now_ns) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= ranks_ || !is_possible(rate, sites_)) return;
  const auto known = std::find_if(reports_.begin(), reports_.end(),
                                  [&](const Report& one) { return one.rank == rank && same_pair(one.rate, rate); });
  if (known == reports_.end())
    reports_.push_back({rank, rate, is_bound, now_ns});
  else
    *known = {rank, rate, is_bound, now_ns};
}

SiteLinkRates RateReports::fresh(std::uint64_t now_ns) const {
  SiteLinkRates rates;
  const auto of_pair = [&rates](const SiteLinkRate& rate) {
    return std::find_if(rates.begin(), rates.end(), [&](const SiteLinkRate& one) { return same_pair(one, rate); });
  };
  const auto is_fresh = [now_ns](const Report& report) { return now_ns - report.at_ns <= kFreshNs; };
  for (const Report& report : reports_)
    if (is_fresh(report) && !report.is_bound && of_pair(report.rate) == rates.end())
      rates.push_back({report.rate.from, report.rate.to, 0, 0});
  for (const Report& report : reports_) {
    const auto sum = of_pair(report.rate);
    if (!is_fresh(report) || sum == rates.end()) continue;
    sum->bytes_per_second += report.rate.bytes_per_second;
    sum->round_trip_s = shorter_known(sum->round_trip_s, report.rate.round_trip_s);
  }
  return rates;
}

SiteLinkRates proposal(const SiteLinkRates& in_force, const SiteLinkRates& fresh) {
  SiteLinkRates wanted = in_force;
  bool changed = false;
  for (const SiteLinkRate& rate : fresh) {
    const auto known = std::find_if(wanted.begin(), wanted.end(), [&](const SiteLinkRate& one) { return same_pair(one, rate); });
    if (known == wanted.end()) {
      wanted.push_back(rate);
      changed = true;
    } else if (replaces(rate, *known)) {
      *known = {rate.from, rate.to, rate.bytes_per_second, rate.round_trip_s > 0 ? rate.round_trip_s : known->round_trip_s};
      changed = true;
    }
  }
  return changed ? wanted : SiteLinkRates();
}

}  // namespace seto
