#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fd.h"
#include "src/base/result.h"
#include "src/command/run/event_loop.h"
#include "src/command/run/messages.h"
#include "src/command/run/rank_events.h"
#include "src/command/run/sink.h"

namespace seto::command {

// How another host is reached: the words of the remote shell, followed by the host's name and the agent's command line.
struct RemoteShell {
  std::vector<std::string> words;  // "ssh"
  std::string seto;                // path of the command on that host
};

// Events that concern a whole host.
class HostEvents {
 public:
  virtual ~HostEvents() = default;
  // A line that the remote shell itself, or a start-up file of that host, has written.
  virtual void remark(const std::string& host, std::string_view line) = 0;
  // These ranks are lost, with the reason.
  virtual void lost(const std::string& host, const std::set<int>& ranks, const std::string& reason) = 0;
};

// The ranks of a job on another host, through an agent that a remote shell started there. Secrets are sent over the shell's
// standard input.
class RemoteRanks final {
 public:
  RemoteRanks(EventLoop& loop, RankEvents& ranks, HostEvents& hosts, std::string host)
      : loop_(loop), ranks_(ranks), hosts_(hosts), host_(std::move(host)) {}
  RemoteRanks(const RemoteRanks&) = delete;
  RemoteRanks& operator=(const RemoteRanks&) = delete;
  ~RemoteRanks();

  [[nodiscard]] Status start(const RemoteShell& shell, const Assignment& assignment);
  void signal(int number);
  void input(std::string_view bytes);
  void input_end();
  // False while rank 0 has enough unread input, or has ended.
  [[nodiscard]] bool wants_input() const { return holds(0) && input_on_its_way_ < kInputWindow; }
  // True if the process was the remote shell of this host.
  bool reaped(pid_t process, int wait_status);
  // Kills the remote shell; the agent ends its ranks when it loses the connection.
  void kill_shell();

  // Stops tracking the ranks and the shell.
  void abandon();

  void let(Flow flow);

  [[nodiscard]] pid_t shell() const { return shell_; }
  [[nodiscard]] bool shell_runs() const { return shell_ > 0; }
  [[nodiscard]] bool holds(int rank) const { return running_.contains(rank); }
  [[nodiscard]] std::size_t running() const { return running_.size(); }

 private:
  void watch_messages();
  bool read_messages();
  bool read_remarks();
  void take_in(std::string_view bytes);
  void take_greeting();
  void handle(const Message& message);
  void give_up(const std::string& reason);

  EventLoop& loop_;
  RankEvents& ranks_;
  HostEvents& hosts_;
  const std::string host_;
  pid_t shell_ = -1;
  Fd to_;
  Fd from_;
  Fd remarks_;
  std::unique_ptr<Sink> sink_;
  std::set<int> running_;
  std::size_t input_on_its_way_ = 0;
  std::string before_greeting_;
  bool greeted_ = false;
  Flow flow_ = Flow::open;
  MessageReader reader_;
};

}  // namespace seto::command
