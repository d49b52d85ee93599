#include "tests/support/ranks.h"

#include <dirent.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <new>
#include <sstream>
#include <thread>

#include "src/base/fd.h"

namespace seto::testing {
namespace {

#ifdef SETO_SANITIZED
constexpr std::uint64_t kJobSeconds = 100;
#else
constexpr std::uint64_t kJobSeconds = 50;
#endif
constexpr std::uint32_t kInitTimeoutMs = 20'000;
constexpr std::uint64_t kMeetSeconds = 30;
constexpr int kMostFrames = 48;
constexpr int kDumpMs = 300;

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void print_own_stack(int) {
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  static constexpr char kHead[] = "---- stack of a thread that did not end\n";
  (void)!write(STDERR_FILENO, kHead, sizeof kHead - 1);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
}

int failed_parts() {
  const ::testing::TestResult& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  int failed = 0;
  for (int part = 0; part < result.total_part_count(); ++part) failed += result.GetTestPartResult(part).failed() ? 1 : 0;
  return failed;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const open = opendir(directory.c_str());
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  closedir(open);
  return names;
}

// Waits between two looks at what another process writes. After many looks it leaves the processors to the rest.
class Pause final {
 public:
  void operator()() {
    if (++looks_ < 1000)
      sched_yield();
    else
      poll(nullptr, 0, 1);
  }

 private:
  int looks_ = 0;
};

}  // namespace

std::string name_of(Kind kind) { return kind == Kind::processes ? "processes" : "threads"; }

setoConfig_t config_of_test() {
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.initTimeoutMs = kInitTimeoutMs;
  return config;
}

Answer answer(setoResult_t code) { return {code, code == setoSuccess ? std::string() : std::string(setoGetLastError(nullptr))}; }

std::ostream& operator<<(std::ostream& stream, const Answer& one) {
  return stream << setoGetErrorString(one.code) << " (" << one.text << ")";
}

// ---- a rank ----

setoUniqueId Seat::id() const {
  if (rank == 0 && board.id_ready.load(std::memory_order_acquire) == 0) {
    const Answer made = answer(setoGetUniqueId(&board.id));
    EXPECT_EQ(made.code, setoSuccess) << made;
    board.id_ready.store(1, std::memory_order_release);
  }
  const std::uint64_t until = now_ns() + kMeetSeconds * 1'000'000'000;
  Pause pause;
  while (board.id_ready.load(std::memory_order_acquire) == 0 && now_ns() < until) pause();
  return board.id;
}

setoComm_t Seat::join() const { return join(config_of_test()); }

setoComm_t Seat::join(setoConfig_t config) const {
  setoComm_t comm = nullptr;
  const Answer made = answer(setoCommInitRankConfig(&comm, ranks, id(), rank, &config));
  EXPECT_EQ(made.code, setoSuccess) << "rank " << rank << ": " << made;
  return comm;
}

bool Seat::meet(std::uint64_t count) const {
  board.counter[static_cast<std::size_t>(rank)].store(count, std::memory_order_release);
  const std::uint64_t until = now_ns() + kMeetSeconds * 1'000'000'000;
  for (int other = 0; other < ranks; ++other) {
    Pause pause;
    while (board.counter[static_cast<std::size_t>(other)].load(std::memory_order_acquire) < count) {
      if (now_ns() > until) return false;
      pause();
    }
  }
  return true;
}

void expect_works(setoComm_t comm, const Seat& seat, std::uint32_t deadline_ms) {
  setoCallConfig_t call = SETO_CALL_CONFIG_INITIALIZER;
  call.deadlineMs = deadline_ms;
  for (const std::size_t count : {std::size_t{1}, std::size_t{3000}, std::size_t{200'000}}) {
    std::vector<int> values(count, seat.rank + 1);
    const Answer done =
        answer(setoAllReduceConfig(values.data(), values.data(), count, setoInt32, setoSum, comm, nullptr, &call));
    ASSERT_EQ(done.code, setoSuccess) << "rank " << seat.rank << ": " << done;
    const int sum = seat.ranks * (seat.ranks + 1) / 2;
    ASSERT_EQ(std::count(values.begin(), values.end(), sum), static_cast<std::ptrdiff_t>(count)) << "rank " << seat.rank;
  }
}

// ---- a job ----

Job::Job(Kind kind, int ranks, const Body& body)
    : kind_(kind),
      ranks_(ranks),
      until_ns_(now_ns() + kJobSeconds * 1'000'000'000),
      children_(static_cast<std::size_t>(kind == Kind::processes ? ranks : 1)) {
  void* const shared = mmap(nullptr, sizeof(JobBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::abort();
  board_ = new (shared) JobBoard;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of ranks become children of this process, which detects them
  std::fflush(nullptr);
  const pid_t parent = getpid();
  for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
    const pid_t forked = fork();
    if (forked == 0) run_child(rank, parent, body);
    children_[static_cast<std::size_t>(rank)].pid = forked;
  }
}

void Job::run_child(int rank, pid_t parent, const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(3);
  const int inherited = failed_parts();
  void* first[1];
  (void)backtrace(first, 1);  // loads the library that the signal handler must not load
  std::signal(SIGUSR2, print_own_stack);
  if (kind_ == Kind::processes) {
    body(Seat{rank, ranks_, *board_});
  } else {
    std::vector<std::thread> threads;
    for (int one = 0; one < ranks_; ++one) threads.emplace_back([&, one] { body(Seat{one, ranks_, *board_}); });
    for (std::thread& thread : threads) thread.join();
  }
  std::fflush(nullptr);
  std::exit(failed_parts() > inherited ? 1 : 0);
}

Job::~Job() {
  for (Child& child : children_) {
    if (child.pid <= 0) continue;
    ::kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
  }
  munmap(board_, sizeof(JobBoard));
}

int Job::remaining_ms() const {
  const std::uint64_t now = now_ns();
  return now >= until_ns_ ? 0 : static_cast<int>((until_ns_ - now) / 1'000'000 + 1);
}

bool Job::reached(int rank, std::uint64_t count) {
  Pause pause;
  while (board_->counter[static_cast<std::size_t>(rank)].load(std::memory_order_acquire) < count) {
    if (remaining_ms() == 0) return false;
    pause();
  }
  return true;
}

void Job::kill(int rank) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  child.killed = true;
  ::kill(child.pid, SIGKILL);
}

void Job::dump_stacks(pid_t pid) const {
  for (const std::string& thread : names_in("/proc/" + std::to_string(pid) + "/task")) {
    syscall(SYS_tgkill, pid, std::atoi(thread.c_str()), SIGUSR2);
    poll(nullptr, 0, kDumpMs);  // so that two texts do not mix
  }
}

void Job::finish() {
  for (std::size_t rank = 0; rank < children_.size(); ++rank) {
    Child& child = children_[rank];
    if (child.pid <= 0) continue;
    const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
    pollfd entry{handle.get(), POLLIN, 0};
    int ended = 0;
    do {
      ended = poll(&entry, 1, remaining_ms());
    } while (ended < 0 && errno == EINTR);
    if (ended == 0) {
      ADD_FAILURE() << "rank " << rank << " did not end in time; its stacks are on standard error";
      dump_stacks(child.pid);
      ::kill(child.pid, SIGKILL);
    }
    int state = 0;
    waitpid(child.pid, &state, 0);
    child.pid = -1;
    if (ended == 0) continue;
    if (child.killed)
      EXPECT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL)
          << "rank " << rank << " ended before it was killed: state " << state;
    else
      EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0)
          << (kind_ == Kind::processes ? "rank " + std::to_string(rank) : "the process of all ranks") << " ended with "
          << (WIFSIGNALED(state) ? "signal " + std::to_string(WTERMSIG(state))
                                 : "exit status " + std::to_string(WEXITSTATUS(state)));
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
}

std::set<std::string> Job::sockets() const {
  std::set<std::string> inodes;
  for (const Child& child : children_) {
    const std::string directory = "/proc/" + std::to_string(child.pid) + "/fd/";
    for (const std::string& name : names_in(directory)) {
      char target[128] = {};
      if (readlink((directory + name).c_str(), target, sizeof target - 1) <= 0) continue;
      unsigned long inode = 0;
      if (std::sscanf(target, "socket:[%lu]", &inode) == 1) inodes.insert(std::to_string(inode));
    }
  }
  std::set<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string row; std::getline(table, row);) {
    std::istringstream fields(row);
    std::vector<std::string> field(std::istream_iterator<std::string>(fields), {});
    if (field.size() == 8 && inodes.count(field[6]) > 0) names.insert(field[7]);
  }
  return names;
}

void run_ranks(Kind kind, int ranks, const Job::Body& body) {
  Job job(kind, ranks, body);
  job.finish();
}

}  // namespace seto::testing
