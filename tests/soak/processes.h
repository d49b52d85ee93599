#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/fd.h"
#include "tests/soak/worker.h"

namespace seto::soak {

// The processes of a run, which the parent leads from generation to generation. The parent never uses the library, so that it may
// fork whenever one has been killed. One thread.
class Crew final {
 public:
  explicit Crew(const Setting& setting);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // False if anything was wrong, which has been printed; then all processes are new ones.
  bool play(std::uint64_t generation);
  // Every process compares what it holds with what it held at first. How many were old enough is added up.
  bool account(int& judged);
  // Everybody ends in an orderly way, leak checks included.
  bool end();

 private:
  struct Process {
    pid_t pid = -1;
    Fd commands;
    Fd reports;
  };
  enum class Answer : std::uint8_t { well, not_well, ended, none };

  void start(int number);
  void tell(const Command& command);
  // What each process answers before the deadline.
  std::vector<Answer> listen(std::uint64_t within_ms, int& judged);
  // Its exit state, once it has ended.
  int reap(Process& process);
  void restart_all();
  void complain(const Plan& plan, std::uint64_t generation, const std::vector<Answer>& answers);
  void clear_directory() const;

  const Setting& setting_;
  std::vector<Process> processes_;
};

}  // namespace seto::soak
