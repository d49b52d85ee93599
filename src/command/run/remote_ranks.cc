#include "src/command/run/remote_ranks.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "src/base/text.h"
#include "src/command/run/pipe.h"
#include "src/command/run/spawn.h"

namespace seto::command {
namespace {

constexpr std::size_t kNoiseLimit = std::size_t{1} << 20;
constexpr std::size_t kRemarkSize = 4096;

constexpr char kNoTalk[] = "cannot create the pipes to a remote shell";

}  // namespace

RemoteRanks::~RemoteRanks() {
  loop_.forget(from_.get());
  loop_.forget(remarks_.get());
}

Status RemoteRanks::start(const RemoteShell& shell, const Assignment& assignment) {
  SETO_ASSIGN(Pipe input, open_pipe(kNoTalk));
  SETO_ASSIGN(Pipe output, open_pipe_to_us(kNoTalk));
  SETO_ASSIGN(Pipe error, open_pipe_to_us(kNoTalk));
  SpawnOptions options;
  options.arguments = shell.words;
  options.arguments.insert(options.arguments.end(), {host_, shell.seto, "agent"});
  options.environment = environment_with({});
  options.input = input.from.get();
  options.output = output.to.get();
  options.error = error.to.get();
  SETO_ASSIGN(shell_, spawn(options));
  to_ = std::move(input.to);
  from_ = std::move(output.from);
  remarks_ = std::move(error.from);
  running_.insert(assignment.ranks.begin(), assignment.ranks.end());
  sink_ = std::make_unique<Sink>(loop_, to_.get());
  loop_.watch(remarks_.get(), POLLIN, [this] { (void)read_remarks(); });
  watch_messages();
  sink_->write(encode(Message::Kind::start, 0, encode(assignment)));
  return {};
}

void RemoteRanks::watch_messages() {
  loop_.watch(from_.get(), POLLIN, [this] { (void)read_messages(); });
}

void RemoteRanks::let(Flow flow) {
  if (std::exchange(flow_, flow) == flow || !from_.valid() || !shell_runs()) return;
  if (flow == Flow::open) {
    watch_messages();
  } else {
    loop_.forget(from_.get());
  }
}

void RemoteRanks::signal(int number) {
  if (sink_ != nullptr && !running_.empty()) sink_->write(encode(Message::Kind::signal, number, {}));
}

void RemoteRanks::input(std::string_view bytes) {
  input_on_its_way_ += bytes.size();
  sink_->write(encode(Message::Kind::input, 0, bytes));
}

void RemoteRanks::input_end() { sink_->write(encode(Message::Kind::input_end, 0, {})); }

void RemoteRanks::kill_shell() {
  if (shell_ > 0) kill(shell_, SIGKILL);
}

void RemoteRanks::abandon() {
  kill_shell();
  if (!running_.empty()) give_up("it does not end");
}

bool RemoteRanks::reaped(pid_t process, int wait_status) {
  if (process != shell_) return false;
  shell_ = -1;
  for (std::size_t read = 0; read < kNoiseLimit && read_remarks(); read += kRemarkSize) {
  }
  while (read_messages()) {
  }
  loop_.forget(from_.get());
  loop_.forget(remarks_.get());
  if (!running_.empty()) give_up("the remote shell " + end_text(wait_status));
  return true;
}

bool RemoteRanks::read_messages() {
  static thread_local std::array<char, 65'536> bytes;
  const ssize_t got = read(from_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {
    loop_.forget(from_.get());  // the end of the shell will give the reason
    return false;
  }
  take_in({bytes.data(), static_cast<std::size_t>(got)});
  return true;
}

bool RemoteRanks::read_remarks() {
  std::array<char, kRemarkSize> bytes;
  const ssize_t got = read(remarks_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {
    loop_.forget(remarks_.get());
    return false;
  }
  hosts_.remark(host_, {bytes.data(), static_cast<std::size_t>(got)});
  return true;
}

void RemoteRanks::take_in(std::string_view bytes) {
  if (running_.empty()) return;
  if (greeted_) {
    reader_.append(bytes);
  } else {
    before_greeting_.append(bytes);
    take_greeting();
  }
  while (greeted_ && !running_.empty()) {
    Result<std::optional<Message>> message = reader_.next();
    if (!message.ok()) return give_up(std::string(message.status().text()));
    if (!message.value().has_value()) return;
    handle(**message);
  }
}

void RemoteRanks::take_greeting() {
  const std::size_t begin = before_greeting_.find(kGreetingMark);
  const std::size_t end = begin == std::string::npos ? begin : before_greeting_.find('\n', begin);
  if (end == std::string::npos) {
    if (before_greeting_.size() > kNoiseLimit) give_up("the remote shell writes text, but the agent of seto does not start");
    return;
  }
  if (begin > 0) hosts_.remark(host_, std::string_view(before_greeting_).substr(0, begin));
  const std::string greeting = before_greeting_.substr(begin, end + 1 - begin);
  if (greeting != agent_greeting()) {
    const std::string theirs = greeting.substr(kGreetingMark.size(), greeting.size() - kGreetingMark.size() - 1);
    const std::string ours = agent_greeting().substr(kGreetingMark.size());
    return give_up("that host has seto " + theirs + ", this one has " + ours.substr(0, ours.size() - 1));
  }
  greeted_ = true;
  reader_.append(std::string_view(before_greeting_).substr(end + 1));
  before_greeting_.clear();
}

void RemoteRanks::handle(const Message& message) {
  switch (message.kind) {
    case Message::Kind::output:
      return ranks_.wrote(message.number, Stream::output, message.body);
    case Message::Kind::error:
      return ranks_.wrote(message.number, Stream::error, message.body);
    case Message::Kind::ended:
      if (running_.erase(message.number) > 0)
        ranks_.ended(message.number, static_cast<int>(parse_uint(message.body).value_or(0)));
      return;
    case Message::Kind::taken:
      input_on_its_way_ -= std::min<std::uint64_t>(input_on_its_way_, parse_uint(message.body).value_or(0));
      return;
    case Message::Kind::failed:
      return give_up(message.body);
    default:
      return give_up("its agent sent an unexpected message");
  }
}

// Other ranks may still run on that host: the agent ends them when its standard input closes. Its output is no longer read,
// because it may never end.
void RemoteRanks::give_up(const std::string& reason) {
  const std::set<int> ranks = std::exchange(running_, {});
  if (sink_ != nullptr) sink_.reset();
  to_.close();
  loop_.forget(from_.get());
  from_.close();
  hosts_.lost(host_, ranks, reason);
}

}  // namespace seto::command
