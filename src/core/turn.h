#pragma once

#include <atomic>
#include <cstdint>

namespace seto {

// Whose turn it is to drive: a lock that nobody waits for. Most often one thread takes it again and again, and an exchange in
// each of its calls cost a sixth of an 8-byte all-reduce. So after a while the turn leans to that thread, which then takes it with
// plain stores; another one that wants it ends that first, and makes every core pass a barrier to do so.
class Turn final {
 public:
  // False: another thread has it, or might; ask again later.
  bool try_take() {
    const std::uintptr_t self = this_thread();
    if (leans_to_.load(std::memory_order_relaxed) != self) return try_take_shared(self);
    // The other half is the barrier in unlean: one of the two sees the other's store. The first load orders a thread after an
    // ended one of the same identity.
    (void)inside_.load(std::memory_order_acquire);
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (leans_to_.load(std::memory_order_acquire) == self) [[likely]] {
      leaning_ = true;
      return true;
    }
    inside_.store(false, std::memory_order_release);
    return false;
  }

  void give_up() {
    if (leaning_)
      inside_.store(false, std::memory_order_release);
    else
      give_up_shared();
  }

  // At this moment; who asks twice may hear different things.
  [[nodiscard]] bool taken() const { return shared_.load() || inside_.load(); }

 private:
  static std::uintptr_t this_thread() {
#if defined(__x86_64__) || defined(__aarch64__)
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
    static thread_local char here;
    return reinterpret_cast<std::uintptr_t>(&here);
#endif
  }

  bool try_take_shared(std::uintptr_t self);
  void give_up_shared();
  bool unlean();

  std::atomic<std::uintptr_t> leans_to_{0};
  std::atomic<bool> inside_{false};  // the thread it leans, or leaned, to has the turn; only it writes
  std::atomic<bool> shared_{false};  // another has it
  // Of whoever has it.
  bool leaning_ = false;  // taken so
  std::uintptr_t last_ = 0;
  std::uint32_t in_a_row_ = 0;
};

}  // namespace seto
