#include "src/bootstrap/init_counts.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "src/base/fork.h"

namespace seto {
namespace {

struct Counts {
  const std::uint32_t generation = fork_generation();
  std::mutex mutex;
  std::map<std::pair<std::string, Rank>, std::uint64_t> next;
};

std::atomic<Counts*> present_counts{nullptr};

// In a forked child another thread of the parent may have held the lock at the fork, so the child uses new counts.
Counts& counts() {
  Counts* present = present_counts.load(std::memory_order_acquire);
  while (present == nullptr || present->generation != fork_generation()) {
    auto fresh = std::make_unique<Counts>();
    if (present_counts.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  }
  return *present;
}

}  // namespace

std::uint64_t next_init(const std::string& id, Rank rank) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  return all.next[{id, rank}]++;
}

}  // namespace seto
