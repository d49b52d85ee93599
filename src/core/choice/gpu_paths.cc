#include "src/core/choice/gpu_paths.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

namespace seto {
namespace {

constexpr double kHopFlags = 1 + kFenceFlags;

std::uint8_t packed(const PciAddress& address) { return static_cast<std::uint8_t>(address.device << 3 | address.function); }

template <class Device>
auto place_of(const Device& device) {
  return std::tuple(device.domain, device.bus, device.device_and_function);
}

bool joins(const GpuPaths::Bundle& one, const GpuPaths::Bundle& other) {
  return one.target != GpuPaths::Target::gpu && one.target == other.target && place_of(one) == place_of(other);
}

// The links of one GPU that lead to the other, directly or by switches.
int links_to(const GpuPaths& one, const GpuPaths& other) {
  int direct = 0;
  int to_switches = 0;
  bool share_a_switch = false;
  for (std::size_t i = 0; i < one.bundle_count; ++i) {
    const GpuPaths::Bundle& bundle = one.bundles[i];
    if (bundle.target != GpuPaths::Target::gpu) {
      to_switches += bundle.links;
      for (std::size_t k = 0; k < other.bundle_count; ++k) share_a_switch = share_a_switch || joins(bundle, other.bundles[k]);
    } else if (other.port_count > 0 && place_of(bundle) == place_of(other.ports[other.port_count - 1])) {
      direct += bundle.links;
    }
  }
  return std::max(direct, share_a_switch ? to_switches : 0);
}

// The slowest link below what the two paths have in common. A link that is not known counts as no limit; 0: none is known.
double slowest_pci(const GpuPaths& one, const GpuPaths& other) {
  std::size_t common = 0;
  while (common < one.port_count && common < other.port_count && place_of(one.ports[common]) == place_of(other.ports[common]))
    ++common;
  double slowest = 0;
  for (const GpuPaths* const path : {&one, &other})
    for (std::size_t i = common; i < path->port_count; ++i) {
      const double rate = pci_payload_bytes_per_second(path->ports[i].generation, path->ports[i].lanes);
      if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
    }
  return slowest;
}

}  // namespace

GpuPaths paths_of(const GpuPlace& gpu) {
  GpuPaths paths;
  paths.sm = gpu.gpu->sm;
  for (const GpuLink& link : gpu.gpu->links) {
    if (paths.bundle_count == GpuPaths::kMostBundles) break;
    GpuPaths::Bundle& bundle = paths.bundles[paths.bundle_count++];
    bundle.links = static_cast<std::uint8_t>(std::clamp(link.count, 0, 255));
    bundle.target = !link.target       ? GpuPaths::Target::hidden_switch
                    : link.to_switch() ? GpuPaths::Target::gpu_switch
                                       : GpuPaths::Target::gpu;
    if (!link.target) continue;
    bundle.domain = link.target->domain;
    bundle.bus = link.target->bus;
    bundle.device_and_function = packed(*link.target);
  }
  const std::size_t left_out = gpu.path.size() - std::min(gpu.path.size(), GpuPaths::kMostPorts);
  for (std::size_t i = left_out; i < gpu.path.size(); ++i) {
    const PciDevice& device = *gpu.path[i];
    paths.ports[paths.port_count++] = {device.address.domain, device.address.bus, packed(device.address),
                                       static_cast<std::uint8_t>(std::clamp(device.generation, 0, 255)),
                                       static_cast<std::uint8_t>(std::clamp(device.lanes, 0, 255))};
  }
  return paths;
}

std::optional<GpuPairCost> cost_between(const GpuPaths& one, const GpuPaths& other, bool may_use_links) {
  const double payload =
      std::min(gpu_link_payload_bytes_per_second(one.sm).value_or(0), gpu_link_payload_bytes_per_second(other.sm).value_or(0));
  const int links = may_use_links && payload > 0 ? std::min(links_to(one, other), links_to(other, one)) : 0;
  if (links > 0) return GpuPairCost{GpuMedium::links, kHopFlags * kLinkFlagNs * 1e-9, links * payload, links};
  const double rate = slowest_pci(one, other);
  if (rate > 0) return GpuPairCost{GpuMedium::pci, kHopFlags * kPciFlagNs * 1e-9, rate, 0};
  return std::nullopt;
}

std::optional<double> gpu_link_payload_bytes_per_second(int sm) {
  struct Generation {
    int least_sm;
    double bytes_per_second;
  };
  constexpr Generation kGenerations[] = {{100, 40.1e9}, {90, 20.6e9}, {86, 12e9}, {70, 20e9}, {60, 18e9}};
  const auto* const found = std::find_if(std::begin(kGenerations), std::end(kGenerations),
                                         [sm](const Generation& generation) { return sm >= generation.least_sm; });
  return found == std::end(kGenerations) ? std::nullopt : std::optional(found->bytes_per_second);
}

double pci_payload_bytes_per_second(int generation, int lanes) {
  if (generation < 1 || generation > 6 || lanes < 1) return 0;
  return 0.1875e9 * (1 << (generation - 1)) * lanes;
}

}  // namespace seto
