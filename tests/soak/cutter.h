#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "tests/soak/board.h"
#include "tests/soak/plan.h"
#include "tests/soak/random.h"

namespace seto::soak {

// Resets TCP connections of this process at random times, on a thread of its own, as a firewall does that forgets them: both ends
// get a reset, and what neither kernel has handed on is lost. A run without cuts has no thread.
class Cutter final {
 public:
  Cutter(const Shape& shape, Board& board, int process);
  ~Cutter();
  Cutter(const Cutter&) = delete;
  Cutter& operator=(const Cutter&) = delete;

  // Connections are cut from the moment at which all ranks have their communicators: an init does not survive a cut.
  void permit();
  // None is cut after it. A cut that is due soon happens here, so that an end follows it at once.
  void forbid();
  // The caller makes no calls for so long. Cuts meanwhile are counted.
  void compute(std::uint64_t ms);

 private:
  [[nodiscard]] bool may_cut() const;
  [[nodiscard]] std::uint64_t pause_ns();
  void run();
  void cut();

  Board& board_;
  const int ranks_;
  const std::uint64_t mean_ns_;  // between two cuts of this process; 0: there are none
  std::mutex mutex_;
  std::condition_variable wakes_;
  Random random_;
  std::uint64_t next_ns_ = 0;
  bool permitted_ = false;
  bool over_ = false;
  std::atomic<int> computing_{0};
  std::thread thread_;
};

// Variables that a run with cuts needs; `log` is the file that tells what was opened again.
void set_environment_of_cuts(const std::string& log);
// A line about that file.
std::string resumptions_in(const std::string& log);

}  // namespace seto::soak
