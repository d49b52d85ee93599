#include "src/topology/site_discovery.h"

#include <utility>

namespace seto {
namespace {

// Each host's nearest head.
struct Nearest {
  std::vector<std::uint32_t> head;  // index in the list of heads
  std::vector<std::uint32_t> round_trip_us;
};

void consider(Nearest& nearest, const HostRoundTrips& round_trips, std::size_t head, std::uint32_t index) {
  for (std::size_t host = 0; host < round_trips.hosts(); ++host) {
    const std::uint32_t round_trip = host == head ? 0 : round_trips.between(host, head);
    if (index > 0 && round_trip >= nearest.round_trip_us[host]) continue;
    nearest.round_trip_us[host] = round_trip;
    nearest.head[host] = index;
  }
}

// Gives sites the numbers of the order in which hosts name them first.
void renumber(FoundSites& found) {
  std::vector<std::uint32_t> numbers(found.sites, found.sites);
  std::uint32_t next = 0;
  for (std::uint32_t& site : found.of_host) {
    if (numbers[site] == found.sites) numbers[site] = next++;
    site = numbers[site];
  }
}

}  // namespace

FoundSites find_sites(const HostRoundTrips& round_trips, std::uint32_t limit_us) {
  FoundSites found;
  const std::size_t hosts = round_trips.hosts();
  if (hosts == 0) return found;
  Nearest nearest{std::vector<std::uint32_t>(hosts), std::vector<std::uint32_t>(hosts)};
  consider(nearest, round_trips, 0, 0);
  for (;; ++found.sites) {
    const auto farthest = std::max_element(nearest.round_trip_us.begin(), nearest.round_trip_us.end());
    if (*farthest == 0 || *farthest < limit_us) break;
    found.guessed = found.guessed || *farthest < 2 * std::uint64_t{limit_us};
    consider(nearest, round_trips, static_cast<std::size_t>(farthest - nearest.round_trip_us.begin()), found.sites);
  }
  found.of_host = std::move(nearest.head);
  renumber(found);
  return found;
}

}  // namespace seto
