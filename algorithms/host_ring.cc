#include "algorithms/host_ring.h"

#include "algorithms/hierarchical.h"

namespace seto {

void build_host_ring_all_reduce(Builder& builder, const Tiers& tiers) {
  build_tiered_all_reduce(builder, tiers, HostPhases::ring);
}

void build_host_ring_reduce_scatter(Builder& builder, const Tiers& tiers) {
  build_tiered_reduce_scatter(builder, tiers, HostPhases::ring);
}

void build_host_ring_all_gather(Builder& builder, const Tiers& tiers) {
  build_tiered_all_gather(builder, tiers, HostPhases::ring);
}

std::string refuses_host_ring(const Tiers& tiers) {
  if (tiers.count() == 1) return "there is one tier";
  for (int tier = 0; tier < tiers.count(); ++tier)
    if (tiers.kind(tier) == TierKind::site && tiers.size(tier) > 2) return "";
  return "no site has more than two hosts";
}

PlanLoad host_ring_all_reduce_load(const Tiers& tiers) { return tiered_all_reduce_load(tiers, HostPhases::ring); }
PlanLoad host_ring_reduce_scatter_load(const Tiers& tiers) { return tiered_reduce_scatter_load(tiers, HostPhases::ring); }
PlanLoad host_ring_all_gather_load(const Tiers& tiers) { return tiered_all_gather_load(tiers, HostPhases::ring); }

}  // namespace seto
