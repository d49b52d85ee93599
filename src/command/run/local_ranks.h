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

// Where the output of ranks goes: to this process, or to its own output.
enum class Output : unsigned char { collected, inherited };

// A process that lives this long after SIGKILL hangs in the kernel; it is no longer waited for.
inline constexpr std::uint64_t kUnkillableMs = 2'000;

// The ranks of a job that are children of this process.
class LocalRanks final {
 public:
  LocalRanks(EventLoop& loop, RankEvents& events) : loop_(loop), events_(events) {}
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks();

  // Rank 0 reads from `input`, the others from /dev/null. After a failure the ranks that already run must still be ended.
  [[nodiscard]] Status start(const RankProgram& program, const std::vector<int>& ranks, Output output, int input);
  void signal(int number);
  // True if the process was one of these ranks.
  bool reaped(pid_t process, int wait_status);

  // Returns the ranks that SIGKILL did not end, and stops tracking them.
  std::set<int> abandon();

  void let(Flow flow);

  [[nodiscard]] std::size_t running() const { return running_.size(); }

 private:
  struct Child {
    int rank = 0;
    std::array<Fd, 2> from;  // one for each stream; invalid: inherited, or at its end
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
