#include "src/core/dump/dump_signal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "src/base/fork.h"

namespace seto {
namespace {

// The handler reads these variables; they are written before it is installed.
std::atomic<int> signal_eventfd{-1};
struct sigaction previous_action {};

// Async-signal-safe: one load, one write, and the program's previous handler.
void on_signal(int signal, siginfo_t* info, void* context) {
  const int before = errno;
  if (const int descriptor = signal_eventfd.load(std::memory_order_relaxed); descriptor >= 0 && !process_was_forked()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof one);
  }
  errno = before;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    if (previous_action.sa_sigaction != nullptr) previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN &&
             previous_action.sa_handler != nullptr) {
    previous_action.sa_handler(signal);
  }
}

// Every other signal has a meaning for the program or for its sender: SIGTERM would no longer end the process, SIGTSTP would not
// stop it.
bool is_free(int signal) { return signal == SIGUSR1 || signal == SIGUSR2 || (signal >= SIGRTMIN && signal <= SIGRTMAX); }

}  // namespace

Status add_to_on_signal(int eventfd, int signal) {
  if (!is_free(signal))
    return failure(Code::invalid_argument,
                   "SETO_DUMP_SIGNAL=%d: that signal already has a meaning; use SIGUSR1 (%d), SIGUSR2 (%d), or one of SIGRTMIN "
                   "to SIGRTMAX (%d to %d)",
                   signal, SIGUSR1, SIGUSR2, SIGRTMIN, SIGRTMAX);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  if (sigaction(signal, nullptr, &previous_action) != 0)
    return system_failure(Code::invalid_argument, "SETO_DUMP_SIGNAL=%d: no handler can be set for it", signal);
  signal_eventfd.store(eventfd, std::memory_order_relaxed);
  if (sigaction(signal, &action, nullptr) != 0)
    return system_failure(Code::invalid_argument, "SETO_DUMP_SIGNAL=%d: no handler can be set for it", signal);
  return {};
}

}  // namespace seto
