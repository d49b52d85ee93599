#include "bench/common/job.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace seto::bench {
namespace {

constexpr int kWatchdogExit = 3;
constexpr auto kGrace = std::chrono::seconds(10);
// About 10 us, longer than a usual skew between ranks that have a core each.
constexpr int kSpins = 2000;

void on_alarm(int /*signal*/) {
  constexpr char kText[] = "bench: timeout (-T): a row took too long; is a rank missing, or the size too large?\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(kWatchdogExit);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Each rank's slot has its own cache lines, so that a store does not disturb an adjacent rank that still measures.
struct alignas(128) RankSlot {
  double value;
  long process_id;
  char host[64];
};

}  // namespace

struct Job::Shared {
  alignas(128) std::atomic<int> arrived;
  alignas(128) std::atomic<unsigned> generation;
  alignas(128) std::atomic<int> failed;
  setoUniqueId id;
  RankSlot* slots;
  double* times;
};

std::unique_ptr<Job> Job::create(const JobShape& shape) {
  const auto ranks = static_cast<std::size_t>(shape.processes) * static_cast<std::size_t>(shape.threads);
  const std::size_t size = sizeof(Shared) + ranks * sizeof(RankSlot) + ranks * shape.iterations * sizeof(double);
  void* mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* shared = new (mapping) Shared();
  // The mapping is at the same address in every child, so pointers into it are valid everywhere.
  shared->slots = reinterpret_cast<RankSlot*>(shared + 1);
  shared->times = reinterpret_cast<double*>(shared->slots + ranks);
  return std::unique_ptr<Job>(new Job(shape, mapping, size));
}

Job::Job(const JobShape& shape, void* mapping, std::size_t size) : shape_(shape), mapping_(mapping), size_(size) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = sched_getaffinity(0, sizeof(cores), &cores) == 0;
  spins_ = known && ranks() <= CPU_COUNT(&cores) ? kSpins : 0;
}

std::unique_ptr<Job> Job::create(const JobShape& shape, std::unique_ptr<Launched> launched) {
  auto job = create(shape);
  if (job != nullptr) job->launched_ = std::move(launched);
  return job;
}

Job::~Job() { munmap(mapping_, size_); }

bool Job::barrier() {
  auto* shared = static_cast<Shared*>(mapping_);
  if (shared->failed.load(std::memory_order_acquire) != 0) return false;
  if (launched_ != nullptr) {
    return launched_->gather(shared->slots, sizeof(RankSlot)) &&
           (shape_.iterations == 0 || launched_->gather(shared->times, shape_.iterations * sizeof(double)));
  }
  const unsigned generation = shared->generation.load(std::memory_order_acquire);
  if (shared->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks()) {
    shared->arrived.store(0, std::memory_order_relaxed);
    shared->generation.store(generation + 1, std::memory_order_release);
    return true;
  }
  for (int spins = 0; shared->generation.load(std::memory_order_acquire) == generation; ++spins) {
    if (shared->failed.load(std::memory_order_acquire) != 0) return false;
    if (spins < spins_) {
      relax();
    } else {
      sched_yield();
    }
  }
  // This load orders the writes of the threads of this process before the barrier also for a race detector, which cannot see that
  // the last rank to arrive, in another process, has read their arrivals.
  (void)shared->arrived.load(std::memory_order_acquire);
  // All ranks arrived. A later failure, such as a non-zero exit after the last barrier, is reported by the next barrier.
  return true;
}

void Job::fail() {
  static_cast<Shared*>(mapping_)->failed.store(1, std::memory_order_release);
  if (launched_ != nullptr) launched_->give_up();
}

setoUniqueId& Job::id() { return static_cast<Shared*>(mapping_)->id; }
double& Job::value(int rank) { return static_cast<Shared*>(mapping_)->slots[rank].value; }
long Job::process_id(int rank) { return static_cast<Shared*>(mapping_)->slots[rank].process_id; }
std::string Job::host(int rank) { return static_cast<Shared*>(mapping_)->slots[rank].host; }

void Job::introduce(int rank) {
  RankSlot& slot = static_cast<Shared*>(mapping_)->slots[rank];
  slot.process_id = getpid();
  if (gethostname(slot.host, sizeof(slot.host) - 1) != 0) std::strcpy(slot.host, "host");
}
double* Job::iteration_times(int rank) {
  return static_cast<Shared*>(mapping_)->times + static_cast<std::size_t>(rank) * shape_.iterations;
}

void Job::arm_watchdog(int seconds) {
  signal(SIGALRM, on_alarm);
  const itimerval timer = {.it_interval = {0, 0}, .it_value = {seconds, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

int Job::run_threads(const std::function<int(int rank)>& body, int process) {
  const int first = process * shape_.threads;
  std::vector<int> codes(static_cast<std::size_t>(shape_.threads), 0);
  std::vector<std::thread> threads;
  for (int index = 1; index < shape_.threads; ++index) {
    threads.emplace_back([&, index] { codes[static_cast<std::size_t>(index)] = body(first + index); });
  }
  codes[0] = body(first);
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(codes.begin(), codes.end());
}

int Job::run(const std::function<int(int rank)>& body) {
  if (launched_ != nullptr) return body(launched_->rank());
  if (shape_.processes == 1) return run_threads(body, 0);
  sigset_t child_signal;
  sigset_t before;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  // The signal is blocked before the first fork, so that sigtimedwait also receives an early one.
  sigprocmask(SIG_BLOCK, &child_signal, &before);
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int process = 0; process < shape_.processes; ++process) {
    const pid_t pid = fork();
    if (pid == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(128 + SIGKILL);
      const int code = run_threads(body, process);
      std::fflush(nullptr);
      // Not exit(), because the destructors of the parent's objects must not run in the child.
      _exit(code);
    }
    if (pid < 0) {
      std::fprintf(stderr, "bench: cannot fork process %d of %d: %s\n", process, shape_.processes, std::strerror(errno));
      for (const pid_t child : children) kill(child, SIGKILL);
      supervise(children);
      return 1;
    }
    children.push_back(pid);
  }
  const int code = supervise(children);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

int Job::report_end(int process, pid_t pid, int status) const {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  const int first = process * shape_.threads;
  std::fprintf(stderr, "bench: rank %d", first);
  if (shape_.threads > 1) std::fprintf(stderr, " to %d", first + shape_.threads - 1);
  std::fprintf(stderr, " (process %d) ended by signal %d (%s)\n", static_cast<int>(pid), signal, strsignal(signal));
  return 128 + signal;
}

int Job::supervise(std::vector<pid_t>& children) {
  using Clock = std::chrono::steady_clock;
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  int worst = 0;
  std::size_t left = children.size();
  Clock::time_point kill_at = Clock::time_point::max();
  while (left > 0) {
    for (std::size_t process = 0; process < children.size(); ++process) {
      int status = 0;
      if (children[process] == 0 || waitpid(children[process], &status, WNOHANG) != children[process]) continue;
      const bool ended_by_us = kill_at == Clock::time_point::min();
      const int code = ended_by_us ? 1 : report_end(static_cast<int>(process), children[process], status);
      children[process] = 0;
      --left;
      worst = std::max(worst, code);
      if (code != 0 && kill_at == Clock::time_point::max()) {
        fail();
        kill_at = Clock::now() + kGrace;
      }
    }
    if (left == 0) break;
    if (kill_at != Clock::time_point::min() && Clock::now() >= kill_at) {
      std::fprintf(stderr, "bench: ending %zu processes that did not notice the failure\n", left);
      for (const pid_t child : children) {
        if (child != 0) kill(child, SIGKILL);
      }
      kill_at = Clock::time_point::min();
    }
    const timespec nap = {.tv_sec = 1, .tv_nsec = 0};
    sigtimedwait(&child_signal, nullptr, &nap);
  }
  return worst;
}

}  // namespace seto::bench
