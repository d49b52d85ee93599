#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The common parts of the small benchmark programs: forked ranks over anonymous shared memory, counters that only grow, one
// barrier. They do not use the library, so that a defect in it cannot hide in the program that measures its limit.
namespace seto::limit {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Two cache lines, because the adjacent-line prefetcher loads lines in pairs.
struct alignas(128) Counter {
  std::atomic<std::uint64_t> value;
};

inline void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

constexpr int kSpins = 200;

// With more ranks than cores the awaited peer often waits for this core, and spinning only delays it (3 times at 8 B).
inline bool oversubscribed(int ranks) { return ranks > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

class Waiter final {
 public:
  explicit Waiter(int ranks) : spins_(oversubscribed(ranks) ? 0 : kSpins) {}

  void spin_before_yield(int spins) { spins_ = spins; }

  // Without a deadline the partners of a dead peer would spin for ever and distort the next measurement.
  void wait_for(const std::atomic<std::uint64_t>& counter, std::uint64_t at_least) const {
    for (int spin = 0; counter.load(std::memory_order_acquire) < at_least; ++spin) {
      if (spin < spins_) {
        pause_core();
      } else {
        wait_slowly(counter, at_least);
        return;
      }
    }
  }

 private:
  static constexpr double kDeadlineSeconds = 60;
  static constexpr unsigned kYieldsPerLook = 1024;

  void wait_slowly(const std::atomic<std::uint64_t>& counter, std::uint64_t at_least) const {
    Clock::time_point start{};
    for (unsigned yields = 1; counter.load(std::memory_order_acquire) < at_least; ++yields) {
      sched_yield();
      for (int spin = 0; spin < spins_ && counter.load(std::memory_order_acquire) < at_least; ++spin) pause_core();
      if (yields % kYieldsPerLook != 0) continue;
      if (start == Clock::time_point{}) start = Clock::now();
      if (seconds_since(start) < kDeadlineSeconds) continue;
      std::fprintf(stderr, "a peer did not arrive within %.0f s; it was probably killed\n", kDeadlineSeconds);
      _exit(3);
    }
  }

  int spins_;
};

// Zeroed memory that children made by fork() share with their parent. It leaves nothing behind, however they end.
inline void* map_shared(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap of shared memory");
    std::exit(2);
  }
  return memory;
}

// Returns this process's rank: 0 in the parent. A child ends with its parent, because an orphan would spin and distort later
// figures.
inline int fork_ranks(int ranks) {
  const pid_t parent = getpid();
  for (int child = 1; child < ranks; ++child) {
    const pid_t made = fork();
    if (made < 0) {
      std::perror("fork");
      std::exit(2);
    }
    if (made != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    return child;
  }
  return 0;
}

// Each rank stays on a core of its own, of those that the process may use. With one core nothing changes.
inline void stay_on_core(int rank) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < 2) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || seen++ < rank) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    (void)sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

// Children exit at once; the parent collects them and returns whether all of them succeeded.
inline bool join_ranks(int rank, bool succeeded) {
  if (rank != 0) _exit(succeeded ? 0 : 1);
  int state = 0;
  while (wait(&state) > 0) succeeded = succeeded && WIFEXITED(state) && WEXITSTATUS(state) == 0;
  return succeeded;
}

inline constexpr int kMaxRanks = 16;

struct BarrierLines {
  Counter arrived[kMaxRanks];
};

// Every rank writes its own line and reads all others. Between two ranks it is exactly one flag exchange.
class Barrier final {
 public:
  Barrier(BarrierLines* lines, int rank, int ranks) : lines_(lines), rank_(rank), ranks_(ranks), waiter_(ranks) {}

  void arrive_and_wait() {
    lines_->arrived[rank_].value.store(++count_, std::memory_order_release);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) waiter_.wait_for(lines_->arrived[peer].value, count_);
    }
  }

 private:
  BarrierLines* lines_;
  int rank_;
  int ranks_;
  Waiter waiter_;
  std::uint64_t count_ = 0;
};

}  // namespace seto::limit
