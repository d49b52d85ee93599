#include "src/command/run/local_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "src/command/run/pipe.h"
#include "src/command/run/spawn.h"

namespace seto::command {
namespace {

constexpr std::size_t kReadSize = 65'536;
// Limit on the output that is read after a rank has ended; a child that it left may continue to write.
constexpr std::size_t kRestLimit = std::size_t{1} << 20;

std::vector<std::string> names_of_rank(const RankProgram& program, int rank, std::size_t local_rank, std::size_t local_ranks) {
  return {"SETO_ROOT=" + program.root, "SETO_RANK=" + std::to_string(rank), "SETO_RANKS=" + std::to_string(program.ranks),
          "LOCAL_RANK=" + std::to_string(local_rank), "LOCAL_WORLD_SIZE=" + std::to_string(local_ranks)};
}

}  // namespace

LocalRanks::~LocalRanks() {
  for (const auto& [process, child] : running_) forget(child);
}

Status LocalRanks::start(const RankProgram& program, const std::vector<int>& ranks, Output output, int input) {
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> common = program.variables;
  const std::vector<std::string> own = names_of_rank(program, 0, 0, 0);
  common.insert(common.end(), own.begin(), own.end());
  common = environment_with(common);  // so that each rank has the same number of variables
  SpawnOptions options;
  options.arguments = program.arguments;
  options.directory = program.directory;
  for (std::size_t index = 0; index < ranks.size(); ++index) {
    options.environment = common;
    const std::vector<std::string> names = names_of_rank(program, ranks[index], index, ranks.size());
    std::copy(names.begin(), names.end(), options.environment.begin() + static_cast<std::ptrdiff_t>(program.variables.size()));
    options.input = ranks[index] == 0 ? input : nothing.get();
    Child child{ranks[index], {}};
    std::array<Pipe, 2> pipes;
    if (output == Output::collected) {
      for (Pipe& pipe : pipes) {
        SETO_ASSIGN(pipe, open_pipe_to_us("cannot read what a rank writes (ulimit -n, two for each rank)"));
      }
      options.output = pipes[0].to.get();
      options.error = pipes[1].to.get();
    }
    SETO_ASSIGN(const pid_t process, spawn(options));
    for (std::size_t stream = 0; stream < pipes.size(); ++stream) child.from[stream] = std::move(pipes[stream].from);
    running_.emplace(process, std::move(child));
    watch(process);
  }
  return {};
}

void LocalRanks::forget(const Child& child) {
  for (const Fd& fd : child.from) loop_.forget(fd.get());
}

void LocalRanks::watch(pid_t process) {
  Child& child = running_.at(process);
  for (std::size_t stream = 0; stream < child.from.size(); ++stream) {
    if (!child.from[stream].valid()) continue;
    loop_.watch(child.from[stream].get(), POLLIN, [this, &child, stream] { (void)read_some(child, stream); });
  }
}

bool LocalRanks::read_some(Child& child, std::size_t stream) {
  static thread_local std::array<char, kReadSize> bytes;
  Fd& fd = child.from[stream];
  const ssize_t got = read(fd.get(), bytes.data(), bytes.size());
  if (got > 0) {
    events_.wrote(child.rank, static_cast<Stream>(stream), {bytes.data(), static_cast<std::size_t>(got)});
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  if (got == 0 || errno != EAGAIN) {
    loop_.forget(fd.get());
    fd.close();
  }
  return false;
}

void LocalRanks::read_rest(Child& child) {
  for (std::size_t stream = 0; stream < child.from.size(); ++stream) {
    for (std::size_t read = 0; child.from[stream].valid() && read < kRestLimit; read += kReadSize)
      if (!read_some(child, stream)) break;
    loop_.forget(child.from[stream].get());
  }
}

bool LocalRanks::reaped(pid_t process, int wait_status) {
  auto ended = running_.extract(process);
  if (ended.empty()) return false;
  read_rest(ended.mapped());
  events_.ended(ended.mapped().rank, wait_status);
  return true;
}

void LocalRanks::signal(int number) {
  for (const auto& [process, child] : running_) kill(process, number);
}

std::set<int> LocalRanks::abandon() {
  std::set<int> ranks;
  for (const auto& [process, child] : running_) {
    ranks.insert(child.rank);
    forget(child);
  }
  running_.clear();
  return ranks;
}

void LocalRanks::let(Flow flow) {
  if (std::exchange(flow_, flow) == flow) return;
  for (const auto& [process, child] : running_) {
    if (flow == Flow::open) {
      watch(process);
    } else {
      forget(child);
    }
  }
}

}  // namespace seto::command
