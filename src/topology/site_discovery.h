#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace seto {

// The shortest known round trip of each pair of hosts, in microseconds; 0: unknown.
class HostRoundTrips {
 public:
  explicit HostRoundTrips(std::size_t hosts) : hosts_(hosts), shortest_(hosts * hosts) {}

  [[nodiscard]] std::size_t hosts() const { return hosts_; }
  [[nodiscard]] std::uint32_t between(std::size_t one, std::size_t other) const {
    return shortest_[std::min(one, other) * hosts_ + std::max(one, other)];
  }
  // Takes a measurement of either end. A busy machine makes a round trip look longer, never shorter, so the shortest one holds.
  void add(std::size_t one, std::size_t other, std::uint32_t round_trip_us) {
    std::uint32_t& shortest = shortest_[std::min(one, other) * hosts_ + std::max(one, other)];
    if (round_trip_us != 0 && (shortest == 0 || round_trip_us < shortest)) shortest = round_trip_us;
  }

 private:
  std::size_t hosts_;
  std::vector<std::uint32_t> shortest_;
};

struct FoundSites {
  std::vector<std::uint32_t> of_host;  // numbered from 0 in the order of their first hosts
  std::uint32_t sites = 1;
  // A round trip that decided is less than twice the limit, so another measurement may decide otherwise.
  bool guessed = false;
};

// Hosts with a round trip below `limit_us` to the head of a site belong to it. Heads are found farthest first: the first host is
// one, and the host that is farthest from all heads is the next one until every host is near a head. A host belongs to its
// nearest head. Needs only the round trips to heads: O(hosts × sites). An unknown round trip counts as near. Pure.
FoundSites find_sites(const HostRoundTrips& round_trips, std::uint32_t limit_us);

}  // namespace seto
