#include "src/core/turn.h"

#include "src/base/core_barrier.h"

namespace seto {
namespace {

// A change of mind costs some microseconds, a take that need not exchange saves twenty nanoseconds.
constexpr std::uint32_t kTakesBeforeLeaning = 256;

}  // namespace

bool Turn::try_take_shared(std::uintptr_t self) {
  if (taken() || shared_.exchange(true, std::memory_order_acquire)) return false;
  if (!unlean()) {
    shared_.store(false, std::memory_order_release);
    return false;
  }
  leaning_ = false;
  in_a_row_ = last_ == self ? in_a_row_ + 1 : 0;
  last_ = self;
  return true;
}

// With `shared_`. False: the thread that it leaned to was faster.
bool Turn::unlean() {
  if (leans_to_.load(std::memory_order_relaxed) != 0) {
    leans_to_.store(0, std::memory_order_relaxed);
    (void)pass_barrier_on_every_core();
  }
  return !inside_.load(std::memory_order_acquire);
}

void Turn::give_up_shared() {
  if (in_a_row_ >= kTakesBeforeLeaning && every_core_can_be_reached()) {
    in_a_row_ = 0;
    leans_to_.store(last_, std::memory_order_release);
  }
  shared_.store(false, std::memory_order_release);
}

}  // namespace seto
