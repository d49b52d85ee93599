#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/fd.h"
#include "src/base/status.h"
#include "src/command/run/event_loop.h"
#include "src/command/run/rank_events.h"

namespace seto::command {

// Where the output of ranks goes: to us, or where ours goes.
enum class Output : unsigned char { collected, inherited };

// A process that lives so long after SIGKILL is in the kernel's hands, and nobody waits for it.
inline constexpr std::uint64_t kUnkillableMs = 2'000;

// The ranks of a job that are children of this process.
class LocalRanks final {
 public:
  LocalRanks(EventLoop& loop, RankEvents& events) : loop_(loop), events_(events) {}
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks();

  // Rank 0 reads from `input`, the others from nothing. On failure those that run already are still to be ended.
  [[nodiscard]] Status start(const RankProgram& program, const std::vector<int>& ranks, Output output, int input);
  void signal(int number);
  // True if the process was one of these ranks.
  bool reaped(pid_t process, int wait_status);

  // Those that SIGKILL did not end, which are none of ours from here on.
  std::set<int> abandon();

  void let(Flow flow);

  [[nodiscard]] std::size_t running() const { return running_.size(); }

 private:
  struct Child {
    int rank = 0;
    std::array<Fd, 2> from;  // by stream; none: inherited, or at its end
  };
  void watch(pid_t process);
  void forget(const Child& child);
  // False at the end of the stream.
  bool read_some(Child& child, std::size_t stream);
  void read_rest(Child& child);

  EventLoop& loop_;
  RankEvents& events_;
  std::map<pid_t, Child> running_;
  Flow flow_ = Flow::open;
};

}  // namespace seto::command
