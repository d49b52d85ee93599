#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/fd.h"
#include "tests/soak/worker.h"

namespace seto::soak {

// The processes of a run. The parent leads them from generation to generation. It never uses the library itself, so that it may
// fork a new process when one was killed. One thread.
class Processes final {
 public:
  explicit Processes(const Setting& setting);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Returns false after a failure, which it has printed; then all processes are new ones.
  bool play(std::uint64_t generation);
  // Every process compares its resources with those at its start. `judged` counts the processes that have run long enough for
  // that.
  bool account(int& judged);
  // Ends all processes in an orderly way, including leak checks.
  bool end();

 private:
  struct Process {
    pid_t pid = -1;
    Fd commands;
    Fd reports;
  };
  enum class Answer : std::uint8_t { well, not_well, ended, none };

  void start(int number);
  void send_order(const Command& command);
  // Reads the answer of each process before the deadline.
  std::vector<Answer> listen(std::uint64_t within_ms, int& judged);
  // Waits for the end of a process and returns its wait status.
  int reap(Process& process);
  void restart_all();
  void print_failure(const Plan& plan, std::uint64_t generation, const std::vector<Answer>& answers);
  void clear_directory() const;

  const Setting& setting_;
  std::vector<Process> processes_;
};

}  // namespace seto::soak
