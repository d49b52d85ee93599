// More processes than have a control channel for each pair: the sockets of a process stay few (SETO_CONTROL_RELAY).

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/ranks.h"

namespace seto::testing {
namespace {

constexpr int kMostProcesses = 256;
#ifdef SETO_SANITIZED
constexpr int kDefaultProcesses = 12;
constexpr int kDefaultThreads = 2;
#else
constexpr int kDefaultProcesses = 56;
constexpr int kDefaultThreads = 2;
#endif
constexpr std::uint64_t kMostSockets = 64;
constexpr std::uint64_t kSettleMs = 20'000;
constexpr std::uint32_t kInitMs = 90'000;

std::uint64_t now_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000 + static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
}

// Larger jobs by hand: 128 processes of 8 threads take minutes on two cores, for which a process may wait longer than the limit
// of liveness (TEST_SECONDS=300, SETO_LIVENESS_TIMEOUT_MS=60000).
int size_of(const char* setting, int otherwise) {
  const char* const text = std::getenv(setting);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Sockets of any kind, as /proc shows them.
std::uint64_t sockets_of_process() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  std::uint64_t count = 0;
  while (const dirent* const entry = readdir(folder.get())) {
    std::array<char, 64> target{};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(path.c_str(), target.data(), target.size() - 1) > 0)
      count += std::string_view(target.data()).substr(0, 7) == "socket:" ? 1 : 0;
  }
  return count;
}

// Memory that the processes share with the test.
struct Board {
  std::atomic<std::uint32_t> id_ready{0};
  setoUniqueId id{};
  std::array<std::atomic<int>, 8> arrived{};
  std::array<std::array<std::atomic<std::uint64_t>, 4>, kMostProcesses> sockets{};
};

class ManyProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SETO_CALIBRATE", "off", 1);
    void* const shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    board_ = new (shared) Board;
  }
  void TearDown() override {
    unsetenv("SETO_CALIBRATE");
    for (const char* name : {"SETO_ALGORITHM", "SETO_CONNECT", "SETO_CONTROL_RELAY"}) unsetenv(name);
    munmap(board_, sizeof(Board));
  }

  // Waits until all ranks have come to this point.
  bool meet(std::size_t point) const {
    board_->arrived[point].fetch_add(1);
    const std::uint64_t until = now_ms() + seconds_ * 1'000;
    while (board_->arrived[point].load() < processes_ * threads_) {
      if (now_ms() > until) return false;
      static_cast<void>(poll(nullptr, 0, 1));
    }
    return true;
  }

  // Only one rank of a process counts. Sockets of handshakes and of the rendezvous may still be closing.
  void count_sockets(int process, int thread, std::size_t at, std::uint64_t limit) const {
    if (thread != 0) return;
    const std::uint64_t until = now_ms() + kSettleMs;
    std::uint64_t count = sockets_of_process();
    while (count > limit && now_ms() < until) {
      static_cast<void>(poll(nullptr, 0, 1));
      count = sockets_of_process();
    }
    board_->sockets[static_cast<std::size_t>(process)][at].store(count);
  }
  [[nodiscard]] std::uint64_t most_sockets(std::size_t at) const {
    std::uint64_t most = 0;
    for (const auto& one : board_->sockets) most = std::max(most, one[at].load());
    return most;
  }

  void run(const std::function<void(int process, int thread)>& body) {
    std::vector<pid_t> children;
    for (int process = 0; process < processes_; ++process) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid > 0) {
        children.push_back(pid);
        continue;
      }
      alarm(static_cast<unsigned>(seconds_) + 10);
      {
        std::vector<std::thread> ranks;
        for (int thread = 0; thread < threads_; ++thread) ranks.emplace_back([&, thread] { body(process, thread); });
        for (std::thread& one : ranks) one.join();
      }
      std::fflush(nullptr);
      std::exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << "process " << child;
    }
  }

  [[nodiscard]] setoComm_t join(int process, int thread) const {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.initTimeoutMs = kInitMs;
    const std::string host = "node " + std::to_string(process);
    config.hostId = host.c_str();
    if (process == 0 && thread == 0) {
      EXPECT_EQ(setoGetUniqueId(&board_->id), setoSuccess);
      board_->id_ready.store(1);
    }
    while (board_->id_ready.load() == 0) static_cast<void>(poll(nullptr, 0, 1));
    setoComm_t comm = nullptr;
    const Answer made =
        answer(setoCommInitRankConfig(&comm, processes_ * threads_, board_->id, process * threads_ + thread, &config));
    EXPECT_EQ(made.code, setoSuccess) << made;
    return comm;
  }

  const int processes_ = size_of("TEST_PROCESSES", kDefaultProcesses);
  const int threads_ = size_of("TEST_THREADS", kDefaultThreads);
  const std::uint64_t seconds_ = static_cast<std::uint64_t>(size_of("TEST_SECONDS", 100));
  // 4 MiB: of shorter sums choice takes plans with some more peers.
  const std::size_t elements_ = static_cast<std::size_t>(size_of("TEST_ELEMENTS", 1 << 20));
  Board* board_ = nullptr;
};

// The algorithm that choice takes for a sum of int32 of this number of bytes.
std::string chosen_for(setoComm_t comm, std::uint64_t bytes) {
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  question.collective = "all_reduce";
  question.bytes = bytes;
  question.datatype = setoInt32;
  question.comm = comm;
  std::string text(64 << 10, '\0');
  EXPECT_EQ(setoExplain(&question, setoFormatJson, text.data(), text.size(), nullptr), setoSuccess);
  const std::string key = R"("chosen":")";
  const std::size_t begin = text.find(key) + key.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

// Few peers come from choice: it leaves out what needs more than kMostPeers in jobs of more than 33 hosts.
TEST_F(ManyProcesses, HoldFewSockets) {
  if (processes_ <= 33) setenv("SETO_ALGORITHM", "host_ring", 1);
  setenv("SETO_CONNECT", "used", 1);  // as in a job of 128 processes of 8 ranks
  constexpr int kRelays = 49;
  const std::uint64_t most_after_init =
      processes_ < kRelays ? kMostSockets : std::min(kMostSockets, static_cast<std::uint64_t>(processes_) / 2 - 1);
  if (processes_ < kRelays) setenv("SETO_CONTROL_RELAY", "on", 1);  // else it is by itself
  run([&](int process, int thread) {
    const setoComm_t comm = join(process, thread);
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(meet(0));
    count_sockets(process, thread, 0, most_after_init);
    ASSERT_TRUE(meet(1));
    const int ranks = processes_ * threads_;
    if (process == 0 && thread == 0) {
      EXPECT_EQ(chosen_for(comm, elements_ * sizeof(int)), "host_ring");
    }
    for (const std::size_t count : {elements_, elements_ - 1}) {
      std::vector<int> values(count, 1);
      const Answer done = answer(setoAllReduce(values.data(), values.data(), count, setoInt32, setoSum, comm, nullptr));
      EXPECT_EQ(done.code, setoSuccess) << done;
      EXPECT_EQ(values, std::vector<int>(count, ranks));
    }
    ASSERT_TRUE(meet(2));
    count_sockets(process, thread, 1, kMostSockets);
    ASSERT_TRUE(meet(3));
    EXPECT_EQ(setoCommDestroy(comm), setoSuccess);
    ASSERT_TRUE(meet(4));
  });
  std::printf("%d processes of %d ranks: at most %llu sockets after init, %llu after an all_reduce\n", processes_, threads_,
              static_cast<unsigned long long>(most_sockets(0)), static_cast<unsigned long long>(most_sockets(1)));
  EXPECT_GT(most_sockets(0), 0U);
  EXPECT_LE(most_sockets(0), most_after_init);
  EXPECT_LE(most_sockets(1), kMostSockets);
}

}  // namespace
}  // namespace seto::testing
