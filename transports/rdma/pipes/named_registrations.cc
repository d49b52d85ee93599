#include "transports/rdma/pipes/named_registrations.h"

#include <sys/resource.h>

#include <algorithm>

namespace seto::rdma {
namespace {

// To register 64 MiB anew takes about as long as to copy what so many uses carry: 32 KiB each.
constexpr std::uint64_t kKeptUses = 1'024;

}  // namespace

std::uint64_t half_of_locked_memory() {
  rlimit limit{};
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur / 2 : kNoLimit;
}

NamedRegistrations::NamedRegistrations(Devices& devices, std::uint64_t limit) {
  for (auto& [name, device] : devices.all()) {
    RegistrationCache::Setup setup;
    setup.device = device.verbs.get();
    setup.limit = std::min(setup.limit, limit);
    setup.kept_uses = kKeptUses;
    caches_[name] = std::make_unique<RegistrationCache>(std::move(setup));
  }
  NamedMemory::of_process().enter(*this);
}

NamedRegistrations::~NamedRegistrations() { NamedMemory::of_process().leave(*this); }

void NamedRegistrations::named(NamedMemory::Name name, std::byte* memory, std::size_t size) {
  for (auto& [device, cache] : caches_) names_[name].emplace_back(cache.get(), cache->name(memory, size));
}

// A device that no trial has shown to read the GPU does not know the memory.
void NamedRegistrations::named_gpu(NamedMemory::Name name, const GpuMemory& memory) {
  for (const GpuReach& reach : memory.reach) {
    const auto found = caches_.find(reach.device);
    if (found == caches_.end() || reach.way == GpuWay::bounce) continue;
    names_[name].emplace_back(found->second.get(), found->second->name_gpu(memory, reach.way));
  }
}

void NamedRegistrations::unnamed(NamedMemory::Name name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  for (const auto& [cache, own] : found->second) (void)cache->unname(own);
  names_.erase(found);
}

}  // namespace seto::rdma
