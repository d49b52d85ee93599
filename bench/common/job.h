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

// Shared state of the ranks of a benchmark, independent of the library under test: a shared mapping made before the fork.
struct JobShape {
  int processes;
  int threads;             // per process
  std::size_t iterations;  // slots for iteration times per rank
};

class Job final {
 public:
  // Returns null with errno set if the mapping cannot be made.
  static std::unique_ptr<Job> create(const JobShape& shape);
  // The same for ranks that a launcher started: each process is one rank, and this process is one of them. There is no shared
  // memory, so each barrier exchanges the values.
  static std::unique_ptr<Job> create(const JobShape& shape, std::unique_ptr<Launched> launched);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Runs body(rank) on every rank: in this process if there is only one process, else in forked processes, which end with this
  // one. Rank 0's process runs ranks 0 to threads - 1, and so on. Returns the worst exit code; a process that a signal ended is
  // named on stderr and counts as 128 + signal. Once one process has failed, the others have ten seconds to end by themselves.
  int run(const std::function<int(int rank)>& body);

  int ranks() const { return shape_.processes * shape_.threads; }
  // Whether a launcher's environment, and not id(), describes the job.
  bool launched() const { return launched_ != nullptr; }

  // The functions below are for ranks.

  // Returns false if some rank failed before all had arrived. It spins briefly where there are enough cores, then yields.
  [[nodiscard]] bool barrier();
  // Makes every barrier return false from now on.
  void fail();

  setoUniqueId& id();
  // One value for each rank. That rank writes it; others read it after a barrier.
  double& value(int rank);
  // Stores process and host of this rank for process_id() and host().
  void introduce(int rank);
  long process_id(int rank);
  std::string host(int rank);
  double* iteration_times(int rank);

  // Ends this process with exit code 3 after this number of seconds, with a text on stderr; 0 disarms. One thread of a process
  // calls it.
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
