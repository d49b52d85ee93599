#include "src/core/dump/dump_signal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "src/base/fork.h"

namespace seto {
namespace {

// What a handler may look at. Written before it is installed.
std::atomic<int> told{-1};
struct sigaction earlier {};

// Async-signal-safe: one load, one write, and whatever the program's own handler does.
void on_signal(int signal, siginfo_t* info, void* context) {
  const int before = errno;
  if (const int descriptor = told.load(std::memory_order_relaxed); descriptor >= 0 && !process_was_forked()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof one);
  }
  errno = before;
  if ((earlier.sa_flags & SA_SIGINFO) != 0) {
    if (earlier.sa_sigaction != nullptr) earlier.sa_sigaction(signal, info, context);
  } else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN && earlier.sa_handler != nullptr) {
    earlier.sa_handler(signal);
  }
}

// Every other one means something to the program or to whoever sends it: SIGTERM would no longer end it, SIGTSTP not stop it.
bool is_free(int signal) { return signal == SIGUSR1 || signal == SIGUSR2 || (signal >= SIGRTMIN && signal <= SIGRTMAX); }

}  // namespace

Status add_to_on_signal(int eventfd, int signal) {
  if (!is_free(signal))
    return failure(Code::invalid_argument,
                   "SETO_DUMP_SIGNAL=%d: that signal has a meaning already; take SIGUSR1 (%d), SIGUSR2 (%d), or one of SIGRTMIN "
                   "to SIGRTMAX (%d to %d)",
                   signal, SIGUSR1, SIGUSR2, SIGRTMIN, SIGRTMAX);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  if (sigaction(signal, nullptr, &earlier) != 0)
    return system_failure(Code::invalid_argument, "SETO_DUMP_SIGNAL=%d: no handler can be set for it", signal);
  told.store(eventfd, std::memory_order_relaxed);
  if (sigaction(signal, &action, nullptr) != 0)
    return system_failure(Code::invalid_argument, "SETO_DUMP_SIGNAL=%d: no handler can be set for it", signal);
  return {};
}

}  // namespace seto
