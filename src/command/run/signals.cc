#include "src/command/run/signals.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace seto::command {

Result<Signals> Signals::take_over() {
  // Opens descriptors 0 to 2 if they are closed, so that no pipe gets one of these numbers.
  for (int number = 0; number <= 2; ++number)
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number)
      return system_failure(Code::unavailable, "standard stream %d is closed", number);
  sigset_t all;
  sigemptyset(&all);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&all, number);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Fd fd(signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return system_failure(Code::unavailable, "cannot listen for signals");
  return Signals(std::move(fd));
}

std::optional<signalfd_siginfo> Signals::next() const {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return info;
}

bool ends_job(int number) { return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT; }

bool from_terminal(const signalfd_siginfo& info) { return info.ssi_code == SI_KERNEL; }

}  // namespace seto::command
