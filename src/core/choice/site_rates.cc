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

bool is_close(double one, double other) { return one <= RateReports::kChange * other && other <= RateReports::kChange * one; }

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
  result.link_rates_of_file = false;
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const SiteLinkRate* const measured = find(possible, from, to);
      const SiteLinkRate* const known = measured != nullptr ? measured : find(possible, to, from);
      LinkFacts link = sites.links.between(from, to);
      const bool is_stated = link.bytes_per_second.has_value() && sites.link_rates_of_file;
      const SiteLinkRate& used = known != nullptr ? *known : *slowest;
      if (measured != nullptr || !is_stated) link.bytes_per_second = used.bytes_per_second;
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
  if (known == reports_.end() || !is_close(known->rate.bytes_per_second, rate.bytes_per_second)) note_change(rate, now_ns);
  if (known == reports_.end())
    reports_.push_back({rank, rate, is_bound, now_ns});
  else
    *known = {rank, rate, is_bound, now_ns};
}

void RateReports::note_change(const SiteLinkRate& rate, std::uint64_t now_ns) {
  const auto last = std::find_if(changes_.begin(), changes_.end(),
                                 [&](const Change& one) { return one.from == rate.from && one.to == rate.to; });
  if (last == changes_.end())
    changes_.push_back({rate.from, rate.to, now_ns});
  else if (now_ns - last->since_ns >= kChangeNs)
    last->since_ns = now_ns;
}

SiteLinkRates RateReports::fresh(std::uint64_t now_ns) const {
  SiteLinkRates rates;
  const auto of_pair = [&rates](const SiteLinkRate& rate) {
    return std::find_if(rates.begin(), rates.end(), [&](const SiteLinkRate& one) { return same_pair(one, rate); });
  };
  for (const Report& report : reports_)
    if (report.is_fresh(now_ns) && !report.is_bound && of_pair(report.rate) == rates.end())
      rates.push_back({report.rate.from, report.rate.to, 0, 0});
  for (const Report& report : reports_) {
    const auto sum = of_pair(report.rate);
    if (!report.is_fresh(now_ns) || sum == rates.end()) continue;
    sum->bytes_per_second += report.rate.bytes_per_second;
    sum->round_trip_s = shorter_known(sum->round_trip_s, report.rate.round_trip_s);
  }
  return rates;
}

bool RateReports::all_since(const Change& change, std::uint64_t now_ns) const {
  return std::none_of(reports_.begin(), reports_.end(), [&](const Report& one) {
    return one.rate.from == change.from && one.rate.to == change.to && one.is_fresh(now_ns) && one.at_ns < change.since_ns;
  });
}

SiteLinkRates RateReports::settled(std::uint64_t now_ns) const {
  SiteLinkRates rates = fresh(now_ns);
  std::erase_if(rates, [&](const SiteLinkRate& rate) {
    return std::any_of(changes_.begin(), changes_.end(),
                       [&](const Change& one) { return one.from == rate.from && one.to == rate.to && !all_since(one, now_ns); });
  });
  return rates;
}

SiteLinkRates proposal(const SiteLinkRates& in_force, const SiteLinkRates& found) {
  SiteLinkRates wanted = in_force;
  bool changed = false;
  for (const SiteLinkRate& rate : found) {
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
