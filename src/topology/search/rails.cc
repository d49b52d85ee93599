#include "src/topology/search/rails.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace seto {
namespace {

bool may_work(const NetPort& port) { return port.up.value_or(true); }

double rate_of(const NetPort& port) { return port.speed_mbit * 1e6 / 8; }

}  // namespace

std::vector<Rail> rails_of(const TopologyHost& host) {
  const std::vector<GpuPlace> gpus = gpus_of(host);
  const std::vector<PortPlace> ports = ports_of(host);
  double fastest = 0;
  for (const PortPlace& each : ports)
    if (may_work(*each.port)) fastest = std::max(fastest, rate_of(*each.port));
  std::vector<int> rails_of_gpu(gpus.size());
  std::vector<Rail> rails;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (!may_work(*ports[port].port) || rate_of(*ports[port].port) < fastest / 2) continue;
    Rail rail{port, 0, gpus.empty() ? PciDistance::same_node : PciDistance::other_node, rate_of(*ports[port].port)};
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const PciDistance here = distance(gpus[gpu], ports[port]);
      const auto best = static_cast<std::size_t>(rail.member);
      if (gpu > 0 && std::tie(here, rails_of_gpu[gpu]) >= std::tie(rail.distance, rails_of_gpu[best])) continue;
      rail.member = static_cast<int>(gpu);
      rail.distance = here;
    }
    if (!gpus.empty()) ++rails_of_gpu[static_cast<std::size_t>(rail.member)];
    rails.push_back(rail);
  }
  return rails;
}

double rate_of_all(const std::vector<Rail>& rails) {
  return std::accumulate(rails.begin(), rails.end(), 0.0,
                         [](double sum, const Rail& rail) { return sum + rail.bytes_per_second; });
}

}  // namespace seto
