#include "tests/launch/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "src/base/clock.h"

namespace seto::testing {
namespace {

namespace fs = std::filesystem;

// Tests may run under launchers, and their variables must not reach the program.
bool is_of_launcher(const std::string& variable) {
  for (const char* prefix :
       {"SETO_", "OMPI_", "PMIX_", "PMI_", "SLURM_", "MPI_LOCAL", "RANK=", "WORLD_SIZE=", "LOCAL_", "MASTER_"})
    if (variable.starts_with(prefix)) return true;
  return false;
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

std::vector<std::string> environment(const std::vector<std::string>& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable(*entry);
    bool changed = is_of_launcher(variable);
    for (const std::string& change : changes) changed = changed || name_of(change) == name_of(variable);
    if (!changed) all.push_back(variable);
  }
  for (const std::string& change : changes)
    if (change.find('=') != std::string::npos) all.push_back(change);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// The input must fit a pipe.
Fd holding(const std::string& input) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const Fd to(ends[1]);
  if (!input.empty() && write(to.get(), input.data(), input.size()) < 0) throw std::runtime_error("no input");
  return Fd(ends[0]);
}

std::string new_mark() {
  static std::atomic<int> count{0};
  return "LAUNCH_TEST_MARK=" + std::to_string(getpid()) + "." + std::to_string(++count);
}

}  // namespace

std::string built(const std::string& place) {
  return (fs::read_symlink("/proc/self/exe").parent_path().parent_path() / place).string();
}

bool is_there(const std::string& program) { return access(program.c_str(), X_OK) == 0; }

std::string found(const std::vector<std::string>& names) {
  const char* const path = std::getenv("PATH");
  for (const std::string& name : names) {
    std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin:/sbin");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (is_there(folder + "/" + name)) return folder + "/" + name;
  }
  return {};
}

Program::Program(std::vector<std::string> arguments, const std::vector<std::string>& variables, const std::string& input)
    : mark_(new_mark()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  from_ = Fd(ends[0]);
  const Fd to(ends[1]);
  const Fd in = holding(input);
  std::vector<std::string> changes = variables;
  changes.push_back(mark_);
  std::vector<std::string> texts = environment(changes);
  const std::vector<char*> words = pointers(arguments);
  const std::vector<char*> names = pointers(texts);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    dup2(in.get(), 0);
    dup2(to.get(), 1);
    dup2(to.get(), 2);
    execvpe(words[0], words.data(), names.data());
    _exit(127);
  }
  process_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const pid_t left : family()) kill(left, SIGKILL);
}

void Program::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

bool Program::read_some(int timeout_ms) {
  pollfd entry{from_.get(), POLLIN, 0};
  if (all_read_ || poll(&entry, 1, timeout_ms) <= 0) return false;
  char bytes[4096];
  const ssize_t got = read(from_.get(), bytes, sizeof bytes);
  if (got > 0) text_.append(bytes, static_cast<std::size_t>(got));
  all_read_ = got <= 0;
  return got > 0;
}

bool Program::writes(const std::string& part) {
  const Deadline until = Deadline::after_ms(30'000);
  while (text_.find(part) == std::string::npos) {
    if (!read_some(until.remaining_ms())) return false;
  }
  return true;
}

Ended Program::wait(int seconds) {
  const Deadline until = Deadline::after_ms(static_cast<std::uint64_t>(seconds) * 1000);
  int status = 0;
  while (!until.passed()) {
    pollfd entries[2] = {{process_.get(), POLLIN, 0}, {all_read_ ? -1 : from_.get(), POLLIN, 0}};
    if (poll(entries, 2, until.remaining_ms()) < 0 && errno != EINTR) break;
    if (entries[1].revents != 0) (void)read_some(0);
    if (entries[0].revents == 0) continue;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    while (read_some(0)) {
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_};
  }
  return {-1, text_};
}

std::vector<pid_t> Program::family() const {
  std::vector<pid_t> members;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "environ");
    std::ostringstream variables;
    variables << file.rdbuf();  // unlike an iterator, this throws nothing if the process ends between open and read
    if ((std::string(1, '\0') + variables.str()).find('\0' + mark_ + '\0') != std::string::npos)
      members.push_back(std::stoi(name));
  }
  return members;
}

// No event reports the end of a process that is not a child, so this polls and yields in between.
bool Program::family_ends(int seconds) const {
  const Deadline until = Deadline::after_ms(static_cast<std::uint64_t>(seconds) * 1000);
  while (!family().empty()) {
    if (until.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

Ended run(std::vector<std::string> arguments, const std::vector<std::string>& variables, const std::string& input) {
  return Program(std::move(arguments), variables, input).wait();
}

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "seto_launch_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Scratch::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name) << text;
  fs::permissions(path_ / name, fs::perms::owner_all);
  return (path_ / name).string();
}

}  // namespace seto::testing
