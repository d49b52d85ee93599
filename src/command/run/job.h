#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/command/run/event_loop.h"
#include "src/command/run/hosts.h"
#include "src/command/run/lines.h"
#include "src/command/run/local_ranks.h"
#include "src/command/run/remote_ranks.h"
#include "src/command/run/signals.h"
#include "src/command/run/sink.h"

namespace seto::command {

struct JobOptions {
  RankProgram program;
  std::vector<Placement> placements;
  RemoteShell shell;
  std::set<std::string> here;  // names of this machine
  Output output = Output::collected;
  Prefix prefix = Prefix::plain;
  std::uint64_t timeout_ms = 0;  // 0: no timeout
  std::uint64_t grace_ms = 5'000;
};

// How long the other ranks may run after one has died. Their own error messages are better, because they state what the ranks
// were doing.
inline constexpr std::uint64_t kPatienceMs = 1'000;

// The ranks of a job, from the start to the end of the last one.
class Job final : public RankEvents, public HostEvents {
 public:
  Job(JobOptions options, Signals signals);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Returns the exit status: that of the worst rank among those that ended before the launcher ended any; 128 + signal; 124 at
  // the timeout.
  int run();

  void wrote(int rank, Stream stream, std::string_view bytes) override;
  void ended(int rank, int wait_status) override;
  void remark(const std::string& host, std::string_view line) override;
  void lost(const std::string& host, const std::set<int>& ranks, const std::string& reason) override;

 private:
  enum class Phase : std::uint8_t { running, patient, terminating, killing, abandoning };

  [[nodiscard]] bool start();
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] int wait_ms() const;
  void look_at_deadlines();
  void enter(Phase phase);
  void signal_all(int number);
  void handle_signals();
  void handle_ending(const signalfd_siginfo& info);
  void reap();
  void died(const std::string& what, int code);
  void abandon();
  void throttle();
  void watch_input();
  void read_input();
  void say(const std::string& line);
  void finish();
  [[nodiscard]] std::set<pid_t> shells() const;
  [[nodiscard]] std::string host_of(int rank) const;
  [[nodiscard]] std::string earlier_end() const;

  const JobOptions options_;
  EventLoop loop_;
  Signals signals_;
  Sink out_;
  Sink error_;
  Lines lines_;
  LocalRanks local_;
  std::vector<std::unique_ptr<RemoteRanks>> remote_;
  RemoteRanks* reads_input_ = nullptr;  // the host of rank 0, if it is remote, until the input of this process ends
  bool input_watched_ = false;
  Phase phase_ = Phase::running;
  Deadline phase_until_ = Deadline::never();
  Deadline timeout_;
  int code_ = 0;
  std::optional<int> ended_well_;  // the first rank that ended with status 0
};

}  // namespace seto::command
