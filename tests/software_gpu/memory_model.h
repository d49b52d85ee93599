#pragma once

#include <cstdint>

#include "tests/software_gpu/history.h"
#include "tests/software_gpu/memory_view.h"
#include "tests/software_gpu/random.h"
#include "tests/software_gpu/write_sources.h"

namespace seto::software_gpu {

struct MemorySettings {
  bool weak = false;               // false: every access takes effect at once, in program order
  std::uint32_t laziness = 8;      // a pending store moves on with a chance of 1 / laziness at each turn
  std::uint32_t stale_one_in = 2;  // a load looks for an old value with this chance
};

// A read-modify-write: compute(old, first, second) gives the new value.
struct AtomicUpdate {
  std::uint64_t (*compute)(std::uint64_t old, std::uint64_t first, std::uint64_t second) = nullptr;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool compares = false;  // it writes only if the old value is `first`

  [[nodiscard]] bool writes(std::uint64_t old) const { return !compares || old == first; }
};

struct MemoryAccess {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  Order order = Order::weak;
  Scope scope = Scope::system;
};

// Global memory as threads see it. A store moves from its thread to its block, its GPU and the system, one buffer at a time. A
// load sees the buffers above it; where no acquire, fence or barrier forbids it, it overlooks stores of other blocks and reads
// what they replaced.
//
// A release (store or fence) leaves its thread only after all stores before it, and takes what its block and GPU hold with it up
// to its scope: that makes it cumulative. It may leave late. So fence.acq_rel permits store buffering, and fence.sc, which
// empties at once, forbids it.
class MemoryModel final {
 public:
  MemoryModel(const MemorySettings& settings, Random& random) : settings_(settings), random_(random) {}

  [[nodiscard]] bool is_weak() const { return settings_.weak; }
  [[nodiscard]] Clock now() const { return now_; }
  // After a fault: old values of memory that may be given back.
  void forget() { history_.clear(); }
  // No thread runs that has yet to learn from strong writes.
  void forget_sources() { sources_.clear(); }

  // `source` becomes the strong write whose value it returns. Null: the caller does not want to know.
  [[nodiscard]] Bits128 load(MemoryView& thread, const MemoryAccess& access, WriteRef* source);
  void store(MemoryView& thread, const MemoryAccess& access, Bits128 value, const WriteRef& write);
  // Returns the old value, and in `source` the write that it is of. `write` travels with the new one.
  std::uint64_t update(MemoryView& thread, const MemoryAccess& access, const AtomicUpdate& update, const WriteRef& write,
                       WriteRef& source);
  void fence(MemoryView& thread, Order order, Scope scope);

  // A barrier orders everything before it in the block before everything after it.
  void arrive_at_barrier(MemoryView& thread) { empty_thread(thread); }
  void leave_barrier(MemoryView& thread) { thread.known.raise(thread.parent->known); }

  // A strong access of shared memory, which is visible at once, orders global memory as its order says.
  void before_shared_store(MemoryView& thread, Order order);
  void after_shared_load(MemoryView& thread, Order order);

  // A thread knows what was visible at the launch of its kernel, however late its block starts.
  static void start_thread(MemoryView& thread, Clock launched);
  void end_thread(MemoryView& thread) { empty_thread(thread); }
  void end_block(MemoryView& block) { empty_block(block, Scope::gpu); }
  // All stores of the GPU become visible, as at the end of a kernel.
  void end_kernel(MemoryView& gpu) { empty_gpu(gpu); }

  // Moves some pending stores on, as the random generator decides.
  void advance(MemoryView& thread);

 private:
  static constexpr std::size_t kThreadStores = 24, kBlockStores = 48, kGpuStores = 96, kSeenLocations = 64;

  // The value of a load as it is put together.
  struct Reading {
    unsigned char bytes[16] = {};
    Horizon saw{};
    WriteRef* source = nullptr;
  };

  void read_below_block(const MemoryView& thread, const MemoryAccess& access, const Horizon& must_see, Reading& reading);
  void read_system(const MemoryAccess& access, Reading& reading) const;
  [[nodiscard]] std::uint64_t newest(const MemoryView& thread, const MemoryAccess& access, WriteRef& source) const;
  static Horizon seen_before(const MemoryView& thread, std::uint64_t address);
  static Horizon& seen_at(MemoryView& thread, std::uint64_t address);
  void acquire(MemoryView& thread, Scope scope);

  void leave_thread(MemoryView& thread, std::size_t position);
  void leave_block(MemoryView& block, std::size_t position);
  void leave_gpu(MemoryView& gpu, std::size_t position);
  void place(MemoryView& block, PendingStore store, Scope scope);
  void place_in_gpu(MemoryView& gpu, PendingStore store);
  void place_in_system(const MemoryView& gpu, const PendingStore& store);
  void empty_thread(MemoryView& thread);
  void empty_block(MemoryView& block, Scope scope);
  void empty_gpu(MemoryView& gpu);
  std::uint64_t update_in_system(const MemoryView& thread, const MemoryAccess& access, const AtomicUpdate& update,
                                 const WriteRef& write, WriteRef& source);

  MemorySettings settings_;
  Random& random_;
  History history_;
  WriteSources sources_;
  Clock now_ = 1;
};

}  // namespace seto::software_gpu
