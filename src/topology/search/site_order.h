#pragma once

#include <cstddef>
#include <vector>

#include "src/topology/site_links.h"

namespace seto {

// The cost of the link from one site (row) to another (column), such as the seconds of a message. The diagonal does not count.
using SiteCosts = std::vector<std::vector<double>>;

// Seconds that a message of 1 MiB takes over a link, by what is known of it. An unknown rate counts as 1 Gbit/s, an unknown round
// trip as 0, so that what is known decides.
double seconds_of_message(const LinkFacts& link);

// The same between all sites of a job.
SiteCosts site_costs(const SiteLinks& links);

// A ring of sites: its first site is 0, the last one is followed by the first.
struct SiteOrder {
  std::vector<int> sites;
  double worst = 0;  // the cost of its most expensive link
  double sum = 0;    // of all its links

  // A ring is better if its worst link is, and among equals if the sum is smaller.
  friend bool operator<(const SiteOrder& one, const SiteOrder& other) {
    return one.worst != other.worst ? one.worst < other.worst : one.sum < other.sum;
  }
};

// Up to this many sites the best ring is found; dynamic programming over subsets takes 0.6 million steps for 12 sites.
inline constexpr std::size_t kMostExactSites = 12;

// The ring of the smallest worst link. Exact for up to kMostExactSites sites.
SiteOrder site_order(const SiteCosts& costs);

// For more sites: from every start to the nearest site that is left, then moves of segments until none helps or the steps are
// used up.
SiteOrder heuristic_site_order(const SiteCosts& costs);

}  // namespace seto
