#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/named_memory.h"
#include "transports/rdma/connect/devices.h"
#include "transports/rdma/link/registration_cache.h"

namespace seto::rdma {

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
// The named memory that a process may register: the other half of what it may lock is for rings.
[[nodiscard]] std::uint64_t half_of_locked_memory();

// The registrations of named memory on each device of one context. The devices outlive it, and it outlives all uses.
class NamedRegistrations final : private NamedMemory::User {
 public:
  // `limit`: bytes on each device, below that of RegistrationCache.
  NamedRegistrations(Devices& devices, std::uint64_t limit);
  NamedRegistrations(const NamedRegistrations&) = delete;
  NamedRegistrations& operator=(const NamedRegistrations&) = delete;
  ~NamedRegistrations() override;

  // The device was there from the beginning.
  [[nodiscard]] RegistrationCache& on(const std::string& device) { return *caches_.at(device); }

 private:
  void named(NamedMemory::Name name, std::byte* memory, std::size_t size) override;
  void named_gpu(NamedMemory::Name name, const GpuMemory& memory) override;
  void unnamed(NamedMemory::Name name) override;

  using OnDevice = std::pair<RegistrationCache*, RegistrationCache::Name>;
  std::map<std::string, std::unique_ptr<RegistrationCache>> caches_;
  std::map<NamedMemory::Name, std::vector<OnDevice>> names_;
};

}  // namespace seto::rdma
