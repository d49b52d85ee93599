#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "transports/gpu_buffer.h"
#include "transports/rdma/link/interval_tree.h"
#include "transports/rdma/verbs/fork_safety.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// Registrations of users' memory on one device. Registering takes a call of the kernel that pins every page, so it is kept for
// later messages, within a limit.
//
// Only memory that its owner has named is registered (setoCommRegister, setoMemAlloc): the owner takes the name back before the
// memory is freed. For memory without a name nothing would tell that it was freed: a later mapping at the same address would be
// taken for it, while the device still uses the old pages.
//
// Any thread. The cache outlives all uses.
class RegistrationCache final {
  struct Entry;

 public:
  struct Setup {
    VerbsDevice* device = nullptr;                  // outlives the cache
    std::uint64_t limit = std::uint64_t{64} << 30;  // bytes that are registered at once
    std::string kernel = kernel_release();
    // Memory that was among the last so many uses is not evicted: other memory, which would take its place, is copied instead.
    std::uint64_t kept_uses = 0;
  };
  explicit RegistrationCache(Setup setup) : setup_(std::move(setup)) {}
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;
  ~RegistrationCache();

  using Name = std::uint64_t;
  // Names memory, which may overlap with other memory that has a name. It is registered on first use.
  Name name(std::byte* memory, std::size_t size);
  // Names memory of a GPU that the device reads in this way. It counts for no limit, and stays registered once it is.
  Name name_gpu(const GpuMemory& memory, GpuWay way);
  // These bytes lie in such memory, so the CPU cannot copy them. Costs nothing where there is none.
  [[nodiscard]] bool is_of_gpu(const std::byte* memory, std::size_t size);
  // The memory is not used any more for what begins later. True: its registration has ended, so it may be freed; false: it ends
  // with the last use.
  bool unname(Name name);

  // As long as it exists, the memory stays registered. It can be moved.
  class Use {
   public:
    Use(Use&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)), entry_(std::move(other.entry_)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Use();
    [[nodiscard]] std::uint32_t local_key() const;
    [[nodiscard]] std::uint32_t remote_key() const;

   private:
    friend class RegistrationCache;
    Use(RegistrationCache* cache, std::shared_ptr<Entry> entry) : cache_(cache), entry_(std::move(entry)) {}
    RegistrationCache* cache_;
    std::shared_ptr<Entry> entry_;
  };
  // A failure: the memory has no name or cannot be registered, so it is to be copied. What the device has refused is refused
  // without a call of the kernel until another registration ends.
  Result<Use> use(const std::byte* memory, std::size_t size);
  // The same without a reason, for a data path: most memory has no name.
  [[nodiscard]] std::optional<Use> use_if_named(const std::byte* memory, std::size_t size);

  struct Facts {
    std::size_t named = 0;
    std::uint64_t registered_bytes = 0;
    std::uint64_t registrations = 0;  // that were made
    std::uint64_t evictions = 0;
  };
  [[nodiscard]] Facts facts();

 private:
  struct Entry {
    Name name = 0;
    std::byte* memory = nullptr;
    std::size_t size = 0;
    bool named = true;
    GpuWay way = GpuWay::bounce;  // else it is memory of a GPU
    int dma_buf = -1;
    std::unique_ptr<MemoryRegion> region;
    std::uint32_t users = 0;
    std::uint64_t last_use = 0;
    Status refused;
    std::uint64_t refused_at = 0;  // the count of registrations that had ended by then

    [[nodiscard]] bool of_gpu() const { return way != GpuWay::bounce; }
  };

  // All with the lock.
  [[nodiscard]] std::shared_ptr<Entry> entry_of(const std::byte* memory, std::size_t size) const;
  Result<Use> use(const std::shared_ptr<Entry>& entry);
  Status register_entry(Entry& entry);
  Status register_gpu(Entry& entry);
  bool evict_one();
  void drop(Entry& entry);
  void release(Entry& entry);

  const Setup setup_;
  std::mutex mutex_;
  IntervalTree<std::shared_ptr<Entry>> named_;
  std::vector<std::shared_ptr<Entry>> registered_;
  std::uint64_t next_name_ = 1;
  std::uint64_t uses_ = 0;
  std::uint64_t ended_ = 0;
  std::atomic<std::size_t> of_gpus_{0};  // entries that have a name
  Facts facts_;
};

}  // namespace seto::rdma
