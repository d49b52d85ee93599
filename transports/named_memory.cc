#include "transports/named_memory.h"

#include <atomic>
#include <memory>

#include "src/base/fork.h"
#include "transports/gpu_buffer.h"

namespace seto {
namespace {

struct OfGeneration {
  const std::uint32_t generation = fork_generation();
  NamedMemory names;
};

std::atomic<std::uint64_t> last_name{0};

}  // namespace

// Never destroyed, so that late calls find it. Nothing of the parent's is touched in a child: its lock may be held for ever.
NamedMemory& NamedMemory::of_process() {
  static std::atomic<OfGeneration*> newest{new OfGeneration};
  OfGeneration* found = newest.load(std::memory_order_acquire);
  while (found->generation != fork_generation()) {
    auto own = std::make_unique<OfGeneration>();
    if (newest.compare_exchange_strong(found, own.get(), std::memory_order_acq_rel)) found = own.release();
  }
  return found->names;
}

NamedMemory::Name NamedMemory::add(std::byte* memory, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const Name name = last_name.fetch_add(1, std::memory_order_relaxed) + 1;
  names_[name] = {memory, size};
  for (User* const user : users_) tell(*user, name, names_[name]);
  return name;
}

NamedMemory::Name NamedMemory::add_gpu(const GpuMemory& memory) {
  const std::lock_guard lock(mutex_);
  const Name name = last_name.fetch_add(1, std::memory_order_relaxed) + 1;
  names_[name] = {memory.address, memory.size, std::make_shared<const GpuMemory>(memory)};
  for (User* const user : users_) tell(*user, name, names_[name]);
  return name;
}

void NamedMemory::tell(User& user, Name name, const Memory& memory) {
  if (memory.gpu != nullptr) return user.named_gpu(name, *memory.gpu);
  user.named(name, memory.data, memory.size);
}

void NamedMemory::remove(Name name) {
  const std::lock_guard lock(mutex_);
  if (names_.erase(name) == 0) return;
  for (User* const user : users_) user->unnamed(name);
}

void NamedMemory::enter(User& user) {
  const std::lock_guard lock(mutex_);
  users_.push_back(&user);
  for (const auto& [name, memory] : names_) tell(user, name, memory);
}

void NamedMemory::leave(User& user) {
  const std::lock_guard lock(mutex_);
  std::erase(users_, &user);
}

}  // namespace seto
