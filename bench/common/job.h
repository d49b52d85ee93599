#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/common/launched.h"
#include "seto/seto.h"

namespace seto::bench {

// What the ranks of a benchmark tell each other without the library under test: a shared mapping made before the fork.
struct JobShape {
  int processes;
  int threads;             // per process
  std::size_t iterations;  // slots for iteration times per rank
};

class Job final {
 public:
  // Null with errno set if the mapping cannot be had.
  static std::unique_ptr<Job> create(const JobShape& shape);
  // The same for ranks that a launcher started: one process of one thread each, and this one is among them. Nothing is shared:
  // each barrier brings what the others wrote.
  static std::unique_ptr<Job> create(const JobShape& shape, std::unique_ptr<Launched> launched);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Runs body(rank) on every rank: in this process if there is one process only, else in forked ones, which die with this one.
  // Rank 0's process hosts ranks 0 to threads - 1, and so on. Gives the worst exit code; a process that a signal ended is named
  // on stderr and counts as 128 + signal. Once one has failed the others have ten seconds to end by themselves.
  int run(const std::function<int(int rank)>& body);

  int ranks() const { return shape_.processes * shape_.threads; }
  // Whether the environment, and not id(), says how the ranks meet.
  bool launched() const { return launched_ != nullptr; }

  // The rest is for ranks.

  // False if some rank failed before all had come. Spins briefly where cores suffice, then yields.
  [[nodiscard]] bool barrier();
  // Makes every barrier return false from now on.
  void fail();

  setoUniqueId& id();
  // One value per rank; written by that rank, read by others after a barrier.
  double& value(int rank);
  // Says where the calling process is, for process_id() and host() of this rank.
  void introduce(int rank);
  long process_id(int rank);
  std::string host(int rank);
  double* iteration_times(int rank);

  // Ends this process with exit code 3 after so many seconds, with a text on stderr; 0 disarms. For one thread of a process.
  static void arm_watchdog(int seconds);

 private:
  struct Shared;
  Job(const JobShape& shape, void* mapping, std::size_t size);
  int run_threads(const std::function<int(int rank)>& body, int process);
  int supervise(std::vector<pid_t>& children);
  int report_end(int process, pid_t pid, int status) const;

  JobShape shape_;
  void* mapping_;
  std::size_t size_;
  int spins_;
  std::unique_ptr<Launched> launched_;
};

}  // namespace seto::bench
