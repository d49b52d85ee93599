#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "include/seto/seto.h"

namespace seto::testing {

// How the ranks of a job run. Threads are those of one process that is forked for them, because the test's own process must never
// use the library, so that one job may follow another.
enum class Kind : std::uint8_t { processes, threads };
std::string name_of(Kind kind);

inline constexpr int kMostRanks = 32;

// Memory that the ranks of a job share with the test.
struct JobBoard {
  std::atomic<std::uint32_t> id_ready{0};
  setoUniqueId id{};
  std::array<std::atomic<std::uint64_t>, kMostRanks> counter{};  // a counter of the body, by rank
  std::array<std::atomic<std::uint64_t>, kMostRanks> time_ns{};  // times of the monotonic clock
  std::array<std::atomic<std::uint64_t>, kMostRanks> figure{};
  std::atomic<std::uint64_t> signal{0};  // from the test to the ranks
};

// One rank's handle of a job.
struct Seat {
  int rank = 0;
  int ranks = 1;
  JobBoard& board;

  // The unique id of the job, which rank 0 makes. Blocks until it exists.
  [[nodiscard]] setoUniqueId id() const;
  // Makes a communicator of all ranks. Returns null after a failure, which it has reported.
  [[nodiscard]] setoComm_t join() const;
  [[nodiscard]] setoComm_t join(setoConfig_t config) const;
  // Waits until every rank has passed the same count, without the library. Returns false after 30 s.
  bool meet(std::uint64_t count) const;
};

// A config with an init deadline that is shorter than that of the test.
setoConfig_t config_of_test();

// A call's result with its text.
struct Answer {
  setoResult_t code = setoSuccess;
  std::string text;

  [[nodiscard]] bool says(std::string_view part) const { return text.find(part) != std::string::npos; }
};
Answer answer(setoResult_t code);
std::ostream& operator<<(std::ostream& stream, const Answer& one);

// Makes blocking all_reduces of ints and checks the results: the communicator works. A rank may return while other ranks are in
// the last call: before a rank ends, aborts or is stopped, all ranks must meet. `deadline_ms`: of each call; 0: the
// communicator's.
void expect_works(setoComm_t comm, const Seat& seat, std::uint32_t deadline_ms = 0);
// A deadline for calls that must succeed on a busy machine, in a communicator whose own deadline is short.
inline constexpr std::uint32_t kLongDeadlineMs = 20'000;

// Forks the ranks and runs the body in each. A rank passes if its body reports no failure and it exits with 0. All ranks end with
// the test. Use it while the test's process has one thread.
class Job final {
 public:
  using Body = std::function<void(const Seat&)>;

  Job(Kind kind, int ranks, const Body& body);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] JobBoard& board() { return *board_; }
  [[nodiscard]] pid_t pid(int rank) const { return children_[static_cast<std::size_t>(rank)].pid; }
  // Blocks until the counter of a rank has this value; returns false at the end of the job's time.
  bool reached(int rank, std::uint64_t count);
  // Sends SIGKILL, which is then the expected end of the rank.
  void kill(int rank);
  // Waits until all ranks have ended. At the end of the job's time it prints the stacks of the remaining ranks, and the test
  // fails.
  void finish();
  // The local sockets of the living ranks, by name, as in /proc/net/unix.
  [[nodiscard]] std::set<std::string> sockets() const;

 private:
  struct Child {
    pid_t pid = -1;
    bool killed = false;
  };
  [[noreturn]] void run_child(int rank, pid_t parent, const Body& body);
  [[nodiscard]] int remaining_ms() const;
  void dump_stacks(pid_t pid) const;

  Kind kind_;
  int ranks_;
  JobBoard* board_;
  std::uint64_t until_ns_;
  std::vector<Child> children_;
};

// Runs a job and finishes it.
void run_ranks(Kind kind, int ranks, const Job::Body& body);

}  // namespace seto::testing
