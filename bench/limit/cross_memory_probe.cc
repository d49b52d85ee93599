// Measures whether a collective would be faster if ranks read each other's ordinary memory through the kernel.
//
//   cross_memory_probe [rounds]       rounds of each size; by default 400, 100 and 15
//
// Two processes exchange messages of 64 KiB, 1 and 16 MiB in three ways:
//   attach  cross-memory attach: the reader copies out of the writer's memory by process_vm_readv
//   slots   the writer copies slices into slots in shared memory, through its cache or past it (the faster way counts), and the
//           reader reads them there: two copies, pipelined by slices
//   mapped  the writer's memory is a file that the reader has mapped: the reader reads it in place
// copy: the message arrives in the reader's memory, as in all_gather. add: it is added to numbers of the reader, as in
// reduce_scatter; attach then copies slices that stay in the cache, and adds from there. one: rank 1 reads; both: each reads what
// the other wrote, at the same time, as ranks of a collective do.
//
// Each process stays on a core of its own, the first and the second that they may use: taskset -c A,B chooses them. On one core a
// message would lie in the cache of its reader.
//
// The writer writes a message anew before it is read. All ways take turns in each round, so that a busy moment spoils all of them
// alike. A figure is the median of the slower rank. Exit status: 1 wrong data, 2 a bad argument, 77 the system refuses
// process_vm_readv.
#include <sys/uio.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "bench/limit/kernels.h"
#include "bench/limit/processes.h"

namespace seto::limit {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMostBytes = 16 * kKiB * kKiB;
constexpr std::size_t kDepth = 4;
constexpr std::size_t kMostSlice = 256 * kKiB;
constexpr int kRefused = 77;

enum class Way : std::size_t { attach, slots_cached, slots_streamed, mapped };
constexpr std::size_t kWays = 4;
enum class Work { copy, add };
enum class Direction { one, both };

struct Job {
  Way way = Way::attach;
  Work work = Work::copy;
  Direction direction = Direction::one;
  std::size_t bytes = 0;
};

struct Shared {
  BarrierLines barrier;
  Counter filled[2];   // slices in the slots of that rank, of all jobs
  Counter drained[2];  // slices of them that the other rank has read
  std::atomic<std::uint64_t> address[2];
  std::atomic<int> process[2];
  std::atomic<double> seconds[2];
  std::atomic<int> refusal[2];  // errno of the first attempt; 0: it works
};

struct Memory {
  Shared* shared;
  char* slots[2];
  float* mapped[2];  // the message of each rank as a file that both map
};

void add(float* __restrict to, const float* __restrict own, const float* __restrict theirs, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = own[i] + theirs[i];
}

float* floats(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    _exit(2);
  }
  return static_cast<float*>(memory);
}

// One of the two processes.
class Rank final {
 public:
  Rank(const Memory& memory, int rank)
      : memory_(memory), rank_(rank), peer_(1 - rank), barrier_(&memory.shared->barrier, rank, 2) {
    Shared& shared = *memory_.shared;
    // Where Yama restricts tracing to descendants a library would have to ask for this exception, too.
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    shared.address[rank_].store(reinterpret_cast<std::uintptr_t>(message_));
    shared.process[rank_].store(getpid());
    barrier_.arrive_and_wait();
    message_[0] = 1;
    errno = 0;
    const bool works = try_attach(sizeof(float), result_);
    shared.refusal[rank_].store(works ? 0 : errno != 0 ? errno : EIO);
    barrier_.arrive_and_wait();
  }

  [[nodiscard]] int refusal() const { return std::max(memory_.shared->refusal[0].load(), memory_.shared->refusal[1].load()); }

  // The time of the slower rank; the same on both ranks.
  double time(const Job& job) {
    write_message(job);
    barrier_.arrive_and_wait();
    const auto start = Clock::now();
    run(job);
    memory_.shared->seconds[rank_].store(seconds_since(start));
    check(job);
    barrier_.arrive_and_wait();
    const double slower = std::max(memory_.shared->seconds[0].load(), memory_.shared->seconds[1].load());
    barrier_.arrive_and_wait();
    return slower;
  }

  [[nodiscard]] int number() const { return rank_; }
  [[nodiscard]] bool sound() const { return sound_; }

 private:
  [[nodiscard]] bool writes(const Job& job) const { return job.direction == Direction::both || rank_ == 0; }
  [[nodiscard]] bool reads(const Job& job) const { return job.direction == Direction::both || rank_ == 1; }
  [[nodiscard]] static float number_of(int rank, std::uint64_t round) {
    return static_cast<float>(round % 1000 * 2 + static_cast<unsigned>(rank));
  }

  void write_message(const Job& job) {
    ++round_;
    float* const message = job.way == Way::mapped ? memory_.mapped[rank_] : message_;
    if (writes(job)) std::fill_n(message, job.bytes / sizeof(float), number_of(rank_, round_));
    if (reads(job) && job.work == Work::add) std::fill_n(own_, job.bytes / sizeof(float), 0.5F);
  }

  void run(const Job& job) {
    const std::size_t count = job.bytes / sizeof(float);
    if (job.way == Way::slots_cached || job.way == Way::slots_streamed) return run_slots(job);
    if (!reads(job)) return;
    if (job.way == Way::attach) return run_attach(job);
    if (job.work == Work::copy)
      std::memcpy(result_, memory_.mapped[peer_], job.bytes);
    else
      add(result_, own_, memory_.mapped[peer_], count);
  }

  bool try_attach(std::size_t bytes, float* to, std::size_t from = 0) {
    while (bytes > 0) {
      const iovec here{to, bytes};
      const iovec there{reinterpret_cast<void*>(memory_.shared->address[peer_].load() + from), bytes};
      const ssize_t got = process_vm_readv(memory_.shared->process[peer_].load(), &here, 1, &there, 1, 0);
      if (got <= 0) return false;
      bytes -= static_cast<std::size_t>(got);
      from += static_cast<std::size_t>(got);
      to += static_cast<std::size_t>(got) / sizeof(float);
    }
    return true;
  }

  void run_attach(const Job& job) {
    if (job.work == Work::copy) {
      sound_ = try_attach(job.bytes, result_) && sound_;
      return;
    }
    const std::size_t slice = slice_of(job);
    for (std::size_t at = 0; at < job.bytes; at += slice) {
      sound_ = try_attach(slice, between_, at) && sound_;
      add(result_ + at / sizeof(float), own_ + at / sizeof(float), between_, slice / sizeof(float));
    }
  }

  [[nodiscard]] static std::size_t slice_of(const Job& job) { return std::min(job.bytes / kDepth, kMostSlice); }

  // Each rank fills a slot and then reads one, so that neither waits while it has other work.
  void run_slots(const Job& job) {
    Shared& shared = *memory_.shared;
    const std::size_t slice = slice_of(job);
    const std::size_t slices = job.bytes / slice;
    for (std::size_t i = 0; i < slices; ++i) {
      const std::size_t at = i * slice / sizeof(float);
      if (writes(job)) {
        if (filled_ >= kDepth) waiter_.wait_for(shared.drained[rank_].value, filled_ - kDepth + 1);
        auto* const slot = reinterpret_cast<float*>(memory_.slots[rank_] + filled_ % kDepth * kMostSlice);
        if (job.way == Way::slots_streamed)
          kernels_.copy_streamed(slot, message_ + at, slice / sizeof(float));
        else
          std::memcpy(slot, message_ + at, slice);
        shared.filled[rank_].value.store(++filled_, std::memory_order_release);
      }
      if (!reads(job)) continue;
      waiter_.wait_for(shared.filled[peer_].value, drained_ + 1);
      const auto* const slot = reinterpret_cast<const float*>(memory_.slots[peer_] + drained_ % kDepth * kMostSlice);
      if (job.work == Work::copy)
        std::memcpy(result_ + at, slot, slice);
      else
        add(result_ + at, own_ + at, slot, slice / sizeof(float));
      shared.drained[peer_].value.store(++drained_, std::memory_order_release);
    }
  }

  void check(const Job& job) {
    if (!reads(job)) return;
    const float expected = number_of(peer_, round_) + (job.work == Work::add ? 0.5F : 0);
    const std::size_t count = job.bytes / sizeof(float);
    for (std::size_t i = 0; i < count; i += count / 16) sound_ = sound_ && result_[i] == expected;
    sound_ = sound_ && result_[count - 1] == expected;
  }

  const Memory& memory_;
  int rank_;
  int peer_;
  Barrier barrier_;
  Waiter waiter_{2};
  const Kernels& kernels_ = best_kernels();
  float* message_ = floats(kMostBytes);
  float* own_ = floats(kMostBytes);
  float* result_ = floats(kMostBytes);
  float* between_ = floats(kMostSlice);
  std::uint64_t filled_ = 0;   // slices in own slots, of all jobs
  std::uint64_t drained_ = 0;  // slices read from the peer's
  std::uint64_t round_ = 0;
  bool sound_ = true;
};

std::string first_line(const char* path, const char* begin = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(begin)) return line;
  return {};
}

std::string processor() {
  const std::string line = first_line("/proc/cpuinfo", "model name");
  const std::size_t colon = line.find(": ");
  return colon == std::string::npos ? "unknown processor" : line.substr(colon + 2);
}

void say_refusal(int error) {
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  std::printf("process_vm_readv is refused here: %s.\n", std::strerror(error));
  if (!scope.empty())
    std::printf("/proc/sys/kernel/yama/ptrace_scope is %s; from 2 on only root may read other processes.\n", scope.c_str());
  std::printf(
      "Other causes: the seccomp profile of a container without CAP_SYS_PTRACE, or processes of different users. Nothing was "
      "measured; slots need no permission.\n");
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One line of the table.
void measure(Rank& rank, Job job, int rounds) {
  std::array<std::vector<double>, kWays> times;
  for (int round = 0; round <= rounds; ++round)
    for (std::size_t way = 0; way < kWays; ++way) {
      job.way = static_cast<Way>(way);
      const double seconds = rank.time(job);
      if (round > 0) times[way].push_back(seconds);  // the first one touches memory for the first time
    }
  std::array<double, kWays> rate{};
  for (std::size_t way = 0; way < kWays; ++way) rate[way] = static_cast<double>(job.bytes) / median(times[way]) / 1e9;
  const auto of = [&rate](Way way) { return rate[static_cast<std::size_t>(way)]; };
  const double slots = std::max(of(Way::slots_cached), of(Way::slots_streamed));
  if (rank.number() != 0) return;
  std::printf("%6zu KiB  %-4s  %-4s  %7.2f  %7.2f  %7.2f  %12.2f\n", job.bytes / kKiB, job.work == Work::copy ? "copy" : "add",
              job.direction == Direction::one ? "one" : "both", of(Way::attach), slots, of(Way::mapped), of(Way::attach) / slots);
  std::fflush(stdout);
}

void print_head() {
  utsname system{};
  (void)uname(&system);
  std::printf("%s, %ld cores, Linux %s\n", processor().c_str(), sysconf(_SC_NPROCESSORS_ONLN), system.release);
  std::printf("GB/s that each reading process receives\n");
  std::printf("      size  work  read   attach    slots   mapped  attach/slots\n");
  std::fflush(stdout);
}

int run(int rounds) {
  Memory memory{};
  memory.shared = static_cast<Shared*>(map_shared(sizeof(Shared)));
  for (int rank = 0; rank < 2; ++rank) {
    memory.slots[rank] = static_cast<char*>(map_shared(kDepth * kMostSlice));
    memory.mapped[rank] = static_cast<float*>(map_shared(kMostBytes));
  }
  std::fflush(nullptr);
  const int number = fork_ranks(2);
  stay_on_core(number);
  Rank rank(memory, number);
  if (const int error = rank.refusal(); error != 0) {
    if (number == 0) say_refusal(error);
    (void)join_ranks(number, true);
    return kRefused;
  }
  if (number == 0) print_head();
  constexpr struct {
    std::size_t bytes;
    int rounds;
  } kSizes[] = {{64 * kKiB, 400}, {1024 * kKiB, 100}, {kMostBytes, 15}};
  for (const auto& size : kSizes)
    for (const Work work : {Work::copy, Work::add})
      for (const Direction direction : {Direction::one, Direction::both})
        measure(rank, {Way::attach, work, direction, size.bytes}, rounds > 0 ? rounds : size.rounds);
  const bool sound = join_ranks(number, rank.sound()) && rank.sound();
  if (!sound) std::fprintf(stderr, "cross_memory_probe: wrong data\n");
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace seto::limit

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;
  if (argc > 2 || (argc > 1 && (rounds < 1 || rounds > 100'000))) {
    std::fprintf(stderr, "usage: cross_memory_probe [rounds]\n");
    return 2;
  }
  return seto::limit::run(rounds);
}
