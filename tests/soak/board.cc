#include "tests/soak/board.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include <cstdlib>
#include <ctime>
#include <new>

namespace seto::soak {
namespace {

constexpr int kEagerLooks = 200;

}  // namespace

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

bool eventually(const std::function<bool()>& true_at_last, std::uint64_t within_ms) {
  const std::uint64_t until = now_ns() + within_ms * 1'000'000;
  for (int looks = 0; !true_at_last(); ++looks) {
    if (now_ns() > until) return false;
    if (looks < kEagerLooks)
      sched_yield();
    else
      poll(nullptr, 0, 1);  // leaves the cores to the awaited threads
  }
  return true;
}

void raise_to(std::atomic<std::uint64_t>& greatest, std::uint64_t value) {
  std::uint64_t present = greatest.load();
  while (present < value && !greatest.compare_exchange_weak(present, value)) {
  }
}

void Board::clear() {
  for (auto& ready : id_ready) ready = false;
  for (auto& rounds : arrived) rounds = 0;
  given_up = false;
  made = 0;
  at_ending = 0;
  spared = 0;
  fault_ns = 0;
}

Board& make_board() {
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return *new (memory) Board;
}

}  // namespace seto::soak
