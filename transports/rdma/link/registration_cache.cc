#include "transports/rdma/link/registration_cache.h"

#include <algorithm>

namespace seto::rdma {
namespace {

std::uint64_t address_of(const std::byte* memory) { return reinterpret_cast<std::uint64_t>(memory); }

}  // namespace

RegistrationCache::~RegistrationCache() {
  for (const auto& each : registered_) SETO_CHECK(each->users == 0);
}

RegistrationCache::Name RegistrationCache::name(std::byte* memory, std::size_t size) {
  const std::lock_guard lock(mutex_);
  auto entry = std::make_shared<Entry>();
  entry->name = next_name_++;
  entry->memory = memory;
  entry->size = size;
  named_.insert({address_of(memory), address_of(memory) + size, entry});
  return entry->name;
}

RegistrationCache::Name RegistrationCache::name_gpu(const GpuMemory& memory, GpuWay way) {
  const std::lock_guard lock(mutex_);
  auto entry = std::make_shared<Entry>();
  entry->name = next_name_++;
  entry->memory = memory.address;
  entry->size = memory.size;
  entry->way = way;
  entry->dma_buf = memory.dma_buf;
  named_.insert({address_of(entry->memory), address_of(entry->memory) + entry->size, entry});
  if (entry->of_gpu()) of_gpus_.fetch_add(1, std::memory_order_relaxed);
  return entry->name;
}

bool RegistrationCache::is_of_gpu(const std::byte* memory, std::size_t size) {
  if (of_gpus_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Entry> entry = entry_of(memory, size);
  return entry != nullptr && entry->of_gpu();
}

bool RegistrationCache::unname(Name name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry> entry;
  named_.erase_if([&](const auto& interval) {
    if (interval.value->name != name) return false;
    entry = interval.value;
    return true;
  });
  if (entry == nullptr) return true;
  entry->named = false;
  if (entry->of_gpu()) of_gpus_.fetch_sub(1, std::memory_order_relaxed);
  if (entry->users > 0) return false;
  drop(*entry);
  return true;
}

Result<RegistrationCache::Use> RegistrationCache::use(const std::byte* memory, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Entry> entry = entry_of(memory, size);
  if (entry == nullptr)
    return failure(Code::unavailable, "%zu bytes at %p are not within memory of setoCommRegister or setoMemAlloc", size,
                   static_cast<const void*>(memory));
  return use(entry);
}

std::optional<RegistrationCache::Use> RegistrationCache::use_if_named(const std::byte* memory, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Entry> entry = entry_of(memory, size);
  if (entry == nullptr) return std::nullopt;
  Result<Use> used = use(entry);
  return used.ok() ? std::optional(std::move(used).value()) : std::nullopt;
}

std::shared_ptr<RegistrationCache::Entry> RegistrationCache::entry_of(const std::byte* memory, std::size_t size) const {
  const auto* const found = named_.containing(address_of(memory), address_of(memory) + size);
  return found == nullptr ? nullptr : found->value;
}

Result<RegistrationCache::Use> RegistrationCache::use(const std::shared_ptr<Entry>& entry) {
  if (entry->region == nullptr) {
    if (!entry->refused.ok() && entry->refused_at == ended_) return entry->refused;
    SETO_TRY(register_entry(*entry));
    registered_.push_back(entry);
  }
  ++entry->users;
  entry->last_use = ++uses_;
  return Use(this, entry);
}

// The pages are those of the GPU, which no fork takes and no limit of locked memory counts.
Status RegistrationCache::register_gpu(Entry& entry) {
  Result<std::unique_ptr<MemoryRegion>> region =
      entry.way == GpuWay::peermem ? setup_.device->register_memory(entry.memory, entry.size)
                                   : setup_.device->register_dma_buf({entry.dma_buf, 0, address_of(entry.memory), entry.size});
  entry.refused = region.status();
  entry.refused_at = ended_;
  if (!region.ok()) return entry.refused;
  entry.region = std::move(region).value();
  ++facts_.registrations;
  return {};
}

Status RegistrationCache::register_entry(Entry& entry) {
  if (entry.of_gpu()) return register_gpu(entry);
  if (!copies_on_fork(setup_.kernel))
    return failure(Code::unavailable,
                   "memory of users is not registered for RDMA on kernel %s: a fork could take it from the device; Linux %d.%d "
                   "does not do that",
                   setup_.kernel.c_str(), kForkKernel[0], kForkKernel[1]);
  if (entry.size > setup_.limit)
    return failure(Code::unavailable, "%zu bytes are more than the %llu that may be registered for RDMA", entry.size,
                   static_cast<unsigned long long>(setup_.limit));
  while (facts_.registered_bytes > setup_.limit - entry.size) {
    if (!evict_one())
      return failure(Code::unavailable, "%llu of %llu bytes that may be registered for RDMA are in use",
                     static_cast<unsigned long long>(facts_.registered_bytes), static_cast<unsigned long long>(setup_.limit));
  }
  while (true) {
    Result<std::unique_ptr<MemoryRegion>> region = setup_.device->register_memory(entry.memory, entry.size);
    if (region.ok()) {
      entry.region = std::move(region).value();
      entry.refused = {};
      facts_.registered_bytes += entry.size;
      ++facts_.registrations;
      return {};
    }
    // The limit of the system for locked memory may be lower than the own one.
    if (evict_one()) continue;
    entry.refused_at = ended_;
    return entry.refused = region.status();
  }
}

// Ends the registration that was not used for longest.
bool RegistrationCache::evict_one() {
  std::shared_ptr<Entry> oldest;
  for (const auto& each : registered_)
    if (!each->of_gpu() && each->users == 0 && (oldest == nullptr || each->last_use < oldest->last_use)) oldest = each;
  if (oldest == nullptr || uses_ - oldest->last_use < setup_.kept_uses) return false;
  drop(*oldest);
  ++facts_.evictions;
  return true;
}

void RegistrationCache::drop(Entry& entry) {
  if (entry.region == nullptr) return;
  entry.region.reset();
  if (!entry.of_gpu()) facts_.registered_bytes -= entry.size;
  ++ended_;
  std::erase_if(registered_, [&](const auto& each) { return each.get() == &entry; });
}

void RegistrationCache::release(Entry& entry) {
  const std::lock_guard lock(mutex_);
  --entry.users;
  if (!entry.named && entry.users == 0) drop(entry);
}

RegistrationCache::Facts RegistrationCache::facts() {
  const std::lock_guard lock(mutex_);
  facts_.named = named_.size();
  return facts_;
}

RegistrationCache::Use::~Use() {
  if (cache_ != nullptr) cache_->release(*entry_);
}

std::uint32_t RegistrationCache::Use::local_key() const { return entry_->region->local_key(); }
std::uint32_t RegistrationCache::Use::remote_key() const { return entry_->region->remote_key(); }

}  // namespace seto::rdma
