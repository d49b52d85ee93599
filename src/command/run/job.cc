#include "src/command/run/job.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "src/command/commands.h"
#include "src/command/run/orphans.h"
#include "src/command/run/spawn.h"

namespace seto::command {
namespace {

constexpr int kTimedOut = 124;   // as timeout(1) returns
constexpr int kCannotRun = 127;  // as a shell returns
constexpr int kHostLost = 255;   // as ssh returns

}  // namespace

Job::Job(JobOptions options, Signals signals)
    : options_(std::move(options)),
      signals_(std::move(signals)),
      out_(loop_, STDOUT_FILENO),
      error_(loop_, STDERR_FILENO),
      lines_(options_.prefix, options_.program.ranks),
      local_(loop_, *this),
      timeout_(options_.timeout_ms == 0 ? Deadline::never() : Deadline::after_ms(options_.timeout_ms)) {}

int Job::run() {
  loop_.watch(signals_.fd(), POLLIN, [this] { handle_signals(); });
  if (!start()) enter(Phase::killing);
  while (running() > 0) {
    watch_input();
    loop_.run_once(wait_ms());
    look_at_deadlines();
    throttle();
  }
  finish();
  return code_;
}

bool Job::start() {
  for (const Placement& placement : options_.placements) {
    Status status;
    if (options_.here.contains(placement.host)) {
      status = local_.start(options_.program, placement.ranks, options_.output, STDIN_FILENO);
    } else {
      remote_.push_back(std::make_unique<RemoteRanks>(loop_, *this, *this, placement.host));
      status = remote_.back()->start(options_.shell, {options_.program, placement.ranks, options_.grace_ms});
      if (status.ok() && remote_.back()->holds(0)) reads_input_ = remote_.back().get();
    }
    if (status.ok()) continue;
    say(std::string(status.text()));
    code_ = status.code() == Code::invalid_argument ? kCannotRun : kFailed;
    return false;
  }
  return true;
}

std::size_t Job::running() const {
  std::size_t count = local_.running();
  for (const auto& host : remote_) count += host->running();
  return count;
}

int Job::wait_ms() const { return std::min(phase_until_.remaining_ms(), timeout_.remaining_ms()); }

void Job::look_at_deadlines() {
  if (timeout_.passed() && phase_ <= Phase::patient) {
    say("not finished after " + std::to_string(options_.timeout_ms / 1000) + " s (--timeout): ending it");
    code_ = kTimedOut;
    signal_all(SIGTERM);
    enter(Phase::terminating);
  }
  if (!phase_until_.passed()) return;
  if (phase_ == Phase::patient) {
    signal_all(SIGTERM);
    enter(Phase::terminating);
  } else if (phase_ == Phase::terminating) {
    enter(Phase::killing);
  } else if (phase_ == Phase::killing) {
    enter(Phase::abandoning);
  }
}

void Job::enter(Phase phase) {
  phase_ = phase;
  phase_until_ = Deadline::never();
  timeout_ = Deadline::never();
  if (phase == Phase::patient) phase_until_ = Deadline::after_ms(kPatienceMs);
  if (phase == Phase::terminating) phase_until_ = Deadline::after_ms(options_.grace_ms);
  if (phase == Phase::killing) {
    signal_all(SIGKILL);
    phase_until_ = Deadline::after_ms(kUnkillableMs);
  }
  if (phase == Phase::abandoning) abandon();
}

void Job::abandon() {
  for (const int rank : local_.abandon()) say("rank " + std::to_string(rank) + " cannot be killed: left behind");
  for (const auto& host : remote_) host->abandon();
}

void Job::signal_all(int number) {
  local_.signal(number);
  for (const auto& host : remote_) host->signal(number);
}

void Job::handle_signals() {
  while (const std::optional<signalfd_siginfo> info = signals_.next()) {
    const int number = static_cast<int>(info->ssi_signo);
    if (ends_job(number)) {
      handle_ending(*info);
    } else if (number != SIGCHLD) {
      signal_all(number);
    }
  }
  reap();
}

// A second ending signal kills at once.
void Job::handle_ending(const signalfd_siginfo& info) {
  const int number = static_cast<int>(info.ssi_signo);
  if (phase_ >= Phase::terminating) return enter(Phase::killing);
  if (phase_ == Phase::running) code_ = 128 + number;
  if (!from_terminal(info)) local_.signal(number);
  for (const auto& host : remote_) host->signal(number);
  enter(Phase::terminating);
}

void Job::reap() {
  int status = 0;
  for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (local_.reaped(process, status)) continue;
    for (const auto& host : remote_)
      if (host->reaped(process, status)) break;
  }
}

void Job::wrote(int rank, Stream stream, std::string_view bytes) {
  (stream == Stream::output ? out_ : error_).write(lines_.add(rank, stream, bytes));
}

void Job::ended(int rank, int wait_status) {
  out_.write(lines_.finish(rank, Stream::output));
  error_.write(lines_.finish(rank, Stream::error));
  const int code = exit_code(wait_status);
  if (code != 0)
    died("rank " + std::to_string(rank) + host_of(rank) + " " + end_text(wait_status) + earlier_end(), code);
  else if (!ended_well_)
    ended_well_ = rank;
}

// A rank that waits for another fails because of it, so the cause may be a rank that ended early with status 0, which no other
// message names.
std::string Job::earlier_end() const {
  if (!ended_well_) return {};
  return ", after rank " + std::to_string(*ended_well_) + host_of(*ended_well_) + " had ended with status 0";
}

void Job::remark(const std::string& host, std::string_view line) {
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\n'), line.size());
    error_.write("seto run: " + host + ": " + std::string(line.substr(0, end)) + "\n");
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

void Job::lost(const std::string& host, const std::set<int>& ranks, const std::string& reason) {
  died("host " + host + " with " + std::to_string(ranks.size()) + " ranks is lost: " + reason, kHostLost);
}

// The exit status of a rank that the launcher ended carries no information.
void Job::died(const std::string& what, int code) {
  if (phase_ >= Phase::terminating) return;
  code_ = std::max(code_, code);
  if (phase_ == Phase::patient) return;
  const std::size_t left = running();
  say(what + (left == 0 ? "" : "; ending the other " + std::to_string(left)));
  enter(Phase::patient);
}

void Job::throttle() {
  if (out_.broken() && phase_ == Phase::running) {  // as a process ends that writes to a pipe without a reader
    code_ = 128 + SIGPIPE;
    signal_all(SIGTERM);
    enter(Phase::terminating);
  }
  const Flow flow = out_.full() || error_.full() ? Flow::held : Flow::open;
  local_.let(flow);
  for (const auto& host : remote_) host->let(flow);
}

void Job::watch_input() {
  const bool wanted = reads_input_ != nullptr && reads_input_->wants_input();
  if (std::exchange(input_watched_, wanted) == wanted) return;
  if (wanted) {
    loop_.watch(STDIN_FILENO, POLLIN, [this] { read_input(); });
  } else {
    loop_.forget(STDIN_FILENO);
  }
}

void Job::read_input() {
  std::array<char, 65'536> bytes;
  const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got > 0 && reads_input_->holds(0)) {
    reads_input_->input({bytes.data(), static_cast<std::size_t>(got)});
  } else if (RemoteRanks* const host = std::exchange(reads_input_, nullptr); host->holds(0)) {
    host->input_end();
  }
  watch_input();
}

void Job::say(const std::string& line) { error_.write("seto run: " + line + "\n"); }

// A slow reader gets all output; after a request to stop, output is not waited for.
void Job::finish() {
  if (phase_ != Phase::running) end_orphans(shells(), Deadline::after_ms(kUnkillableMs));
  while ((!out_.empty() && !out_.broken()) || (!error_.empty() && !error_.broken())) {
    if (phase_ >= Phase::terminating) {
      out_.flush_within(1'000);
      error_.flush_within(1'000);
      break;
    }
    loop_.run_once(-1);
  }
  // The remote shells end with their agents.
  const Deadline until = Deadline::after_ms(phase_ == Phase::running ? options_.grace_ms : kUnkillableMs);
  while (!until.passed() && std::any_of(remote_.begin(), remote_.end(), [](const auto& host) { return host->shell_runs(); }))
    loop_.run_once(until.remaining_ms());
  for (const auto& host : remote_) host->kill_shell();
  reap();
}

std::set<pid_t> Job::shells() const {
  std::set<pid_t> running;
  for (const auto& host : remote_)
    if (host->shell_runs()) running.insert(host->shell());
  return running;
}

std::string Job::host_of(int rank) const {
  if (options_.placements.size() < 2) return {};
  for (const Placement& placement : options_.placements)
    if (std::find(placement.ranks.begin(), placement.ranks.end(), rank) != placement.ranks.end()) return " on " + placement.host;
  return {};
}

}  // namespace seto::command
