#include "src/command/run/agent.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/clock.h"
#include "src/command/commands.h"
#include "src/command/run/local_ranks.h"
#include "src/command/run/messages.h"
#include "src/command/run/orphans.h"
#include "src/command/run/pipe.h"
#include "src/command/run/signals.h"
#include "src/command/run/sink.h"

namespace seto::command {
namespace {

// Rank 0's consumption of input is reported in steps of this size, or when it has taken all.
constexpr std::size_t kTakenStep = kInputWindow / 16;

class Agent final : public RankEvents {
 public:
  explicit Agent(Signals signals) : signals_(std::move(signals)), out_(loop_, STDOUT_FILENO), ranks_(loop_, *this) {}

  int run() {
    loop_.watch(STDIN_FILENO, POLLIN, [this] { read_orders(); });
    loop_.watch(signals_.fd(), POLLIN, [this] { handle_signals(); });
    out_.write(agent_greeting());
    while (!done()) {
      loop_.run_once(until_.remaining_ms());
      if (until_.passed()) insist();
      ranks_.let(out_.full() ? Flow::held : Flow::open);
      tell_taken();
      if (input_ended_ && input_ != nullptr && (input_->empty() || input_->broken())) {
        input_.reset();
        to_rank_.close();
      }
    }
    if (lost_ || failing_) end_orphans({}, Deadline::after_ms(kUnkillableMs));
    out_.flush_within(lost_ ? 0 : 10'000);
    return 0;
  }

  void wrote(int rank, Stream stream, std::string_view bytes) override {
    out_.write(encode(stream == Stream::output ? Message::Kind::output : Message::Kind::error, rank, bytes));
  }
  void ended(int rank, int wait_status) override {
    failing_ = failing_ || wait_status != 0;
    out_.write(encode(Message::Kind::ended, rank, std::to_string(wait_status)));
  }

 private:
  [[nodiscard]] bool done() const { return (started_ || lost_) && ranks_.running() == 0; }

  void read_orders() {
    std::array<char, 65'536> bytes;
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got <= 0) return lose();
    orders_.append({bytes.data(), static_cast<std::size_t>(got)});
    while (!lost_) {
      Result<std::optional<Message>> order = orders_.next();
      if (!order.ok()) return lose();
      if (!order.value().has_value()) return;
      obey(**order);
    }
  }

  void obey(const Message& order) {
    switch (order.kind) {
      case Message::Kind::start:
        return start(order.body);
      case Message::Kind::signal:
        if (order.number == SIGKILL) return kill_all();
        return ranks_.signal(order.number);
      case Message::Kind::input:
        input_untold_ += order.body.size();
        if (input_ != nullptr) input_->write(order.body);
        return;
      case Message::Kind::input_end:
        input_ended_ = true;
        return;
      default:
        return lose();
    }
  }

  void start(std::string_view body) {
    const Status status = started_ ? failure(Code::remote_error, "started twice") : try_to_start(body);
    started_ = true;
    if (!status.ok()) fail(status.text());
  }

  void fail(std::string_view why) {
    out_.write(encode(Message::Kind::failed, 0, why));
    lose();
  }

  Status try_to_start(std::string_view body) {
    SETO_ASSIGN(const Assignment assignment, decode_assignment(body));
    grace_ms_ = assignment.grace_ms;
    SETO_ASSIGN(Pipe input, open_pipe("cannot give a rank its input"));
    to_rank_ = std::move(input.to);
    input_ = std::make_unique<Sink>(loop_, to_rank_.get());
    return ranks_.start(assignment.program, assignment.ranks, Output::collected, input.from.get());
  }

  // The connection to the launcher is lost or must be given up.
  void lose() {
    if (std::exchange(lost_, true)) return;
    loop_.forget(STDIN_FILENO);
    ranks_.signal(SIGTERM);
    if (!killed_) until_ = Deadline::after_ms(grace_ms_);
  }

  void kill_all() {
    ranks_.signal(SIGKILL);
    killed_ = failing_ = true;
    until_ = Deadline::after_ms(kUnkillableMs);
  }

  void insist() {
    if (!killed_) return kill_all();
    until_ = Deadline::never();
    (void)ranks_.abandon();
  }

  // Input that an ended rank will never read counts as taken.
  void tell_taken() {
    const std::size_t waiting = input_ == nullptr ? 0 : input_->waiting();
    const std::size_t taken = input_untold_ - waiting;
    if (taken == 0 || (taken < kTakenStep && waiting > 0)) return;
    out_.write(encode(Message::Kind::taken, 0, std::to_string(taken)));
    input_untold_ = waiting;
  }

  void handle_signals() {
    while (const std::optional<signalfd_siginfo> info = signals_.next()) {
      if (ends_job(static_cast<int>(info->ssi_signo))) lose();
    }
    int status = 0;
    for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG)) > 0;) (void)ranks_.reaped(process, status);
  }

  EventLoop loop_;
  Signals signals_;
  Sink out_;
  LocalRanks ranks_;
  MessageReader orders_;
  Fd to_rank_;
  std::unique_ptr<Sink> input_;
  std::size_t input_untold_ = 0;
  bool failing_ = false;  // a rank has failed or was ended: the processes that it leaves behind are ended too
  Deadline until_ = Deadline::never();
  std::uint64_t grace_ms_ = 0;
  bool started_ = false;
  bool input_ended_ = false;
  bool lost_ = false;
  bool killed_ = false;
};

}  // namespace

int run_agent() {
  Result<Signals> signals = Signals::take_over();
  if (!signals.ok()) return std::fprintf(stderr, "seto agent: %s\n", std::string(signals.status().text()).c_str()), kFailed;
  return Agent(std::move(signals).value()).run();
}

}  // namespace seto::command
