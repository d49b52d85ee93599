#include "src/command/run/spawn.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "src/command/run/pipe.h"

namespace seto::command {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool put_in_place(int from, int to) { return from < 0 || from == to || dup2(from, to) == to; }

// Runs in the memory of the parent, which is suspended meanwhile: system calls only. On success `failure` is closed by exec,
// otherwise the errno is written to it. Shared memory is not used for that, because a sanitizer turns vfork into fork.
[[noreturn]] void become(const SpawnOptions& options, char* const* arguments, char* const* environment, pid_t parent,
                         int failure) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const bool placed = put_in_place(options.input, 0) && put_in_place(options.output, 1) && put_in_place(options.error, 2);
  if (placed && (options.directory.empty() || chdir(options.directory.c_str()) == 0))
    execvpe(arguments[0], arguments, environment);
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(127);
}

std::string_view name_of_variable(std::string_view variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

Result<pid_t> spawn(const SpawnOptions& options) {
  if (gettid() != getpid()) return failure(Code::internal, "a process was to be started by a thread, and would end with it");
  const std::vector<char*> arguments = pointers_to(options.arguments);
  const std::vector<char*> environment = pointers_to(options.environment);
  const pid_t parent = getpid();
  SETO_ASSIGN(Pipe failing, open_pipe("cannot start a process"));
  const pid_t child = vfork();
  if (child == 0) become(options, arguments.data(), environment.data(), parent, failing.to.get());
  if (child < 0) return system_failure(Code::unavailable, "cannot start a process");
  failing.to.close();
  int error = 0;
  if (TEMP_FAILURE_RETRY(read(failing.from.get(), &error, sizeof error)) == 0) return child;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  errno = error;
  return system_failure(Code::invalid_argument, "cannot run %s%s%s", options.arguments[0].c_str(),
                        options.directory.empty() ? "" : " in ", options.directory.c_str());
}

std::string end_text(int wait_status) {
  if (WIFEXITED(wait_status)) return "exited with status " + std::to_string(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  const char* const name = sigabbrev_np(number);
  std::string text = "was killed by signal " + std::to_string(number);
  return name == nullptr ? text : text.append(" (SIG").append(name).append(")");
}

int exit_code(int wait_status) { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status); }

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> variables = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = name_of_variable(*entry);
    bool changed = false;
    for (const std::string& change : changes) changed = changed || name_of_variable(change) == name;
    if (!changed) variables.emplace_back(*entry);
  }
  return variables;
}

}  // namespace seto::command
