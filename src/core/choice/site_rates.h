#pragma once

#include <cstdint>
#include <vector>

#include "src/base/types.h"
#include "src/topology/site_links.h"

namespace seto {

// The link from one site to another, as traffic showed it.
struct SiteLinkRate {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double bytes_per_second = 0;
  double round_trip_s = 0;  // without queues; 0: unknown, so what was found at the beginning holds

  friend bool operator==(const SiteLinkRate&, const SiteLinkRate&) = default;
};
using SiteLinkRates = std::vector<SiteLinkRate>;

// A rate replaces one that is lower or higher by more than these factors. The first reports come while sockets still find out
// what the link carries, so a little more is enough: else the rate in force would stay up to a quarter too low.
inline constexpr double kRateRise = 1.1;
inline constexpr double kRateFall = 1.25;
// The same for a round trip, which jitters.
inline constexpr double kRoundTripChange = 1.25;

// The shorter of two times; 0 stands for an unknown one.
[[nodiscard]] double shorter_known(double one, double other);

// The sites with these rates in place of all others. Numbers are bounded, and a pair that does not exist is left out. A link
// without a rate, also of a file, gets that of the other direction, else the lowest measured one, so that the worst link is known
// once any is.
[[nodiscard]] Sites with_rates(const Sites& sites, const SiteLinkRates& rates);

// A split takes this over from its parent: rates between sites of the parent.
struct InheritedRates {
  std::uint64_t version = 0;
  SiteLinkRates rates;
  std::vector<std::uint32_t> site_of_rank;  // of the parent, by rank of the part
};
[[nodiscard]] SiteLinkRates rates_of_part(const InheritedRates& parent, const Sites& part);

// The reports of ranks about their links, on the rank that proposes versions. The ranks of a site share its link to another site
// and see a part of it each, so what they reported in the last time is added up. A rank whose part was not full tells what it
// carried at least; that alone says nothing of the link.
class RateReports final {
 public:
  static constexpr std::uint64_t kFreshNs = 5'000'000'000;
  // Ranks report again within this time, so after it a change is known to all of them.
  static constexpr std::uint64_t kChangeNs = 1'000'000'000;
  static constexpr double kChange = 1.1;  // of a rank's own rate

  RateReports(std::uint32_t sites, int ranks) : sites_(sites), ranks_(static_cast<std::size_t>(ranks)) {}

  // Reports of sites or ranks that do not exist, and rates that no link can have, are ignored.
  void add(Rank rank, const SiteLinkRate& rate, bool is_bound, std::uint64_t now_ns);
  [[nodiscard]] SiteLinkRates fresh(std::uint64_t now_ns) const;
  // The fresh ones without pairs whose ranks have not all reported since the first of them saw a change: a sum of reports from
  // before and after a change is the rate of no link.
  [[nodiscard]] SiteLinkRates settled(std::uint64_t now_ns) const;

 private:
  struct Report {
    Rank rank = 0;
    SiteLinkRate rate;
    bool is_bound = false;
    std::uint64_t at_ns = 0;

    [[nodiscard]] bool is_fresh(std::uint64_t now_ns) const { return now_ns - at_ns <= kFreshNs; }
  };

  struct Change {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t since_ns = 0;
  };
  void note_change(const SiteLinkRate& rate, std::uint64_t now_ns);
  [[nodiscard]] bool all_since(const Change& change, std::uint64_t now_ns) const;

  std::uint32_t sites_;
  std::size_t ranks_;
  std::vector<Report> reports_;  // one for each rank and pair
  std::vector<Change> changes_;  // the latest of each pair
};

// The rates that should be in force: those in force, with each one that differs from it or is new. Empty: none does.
[[nodiscard]] SiteLinkRates proposal(const SiteLinkRates& in_force, const SiteLinkRates& found);

}  // namespace seto
