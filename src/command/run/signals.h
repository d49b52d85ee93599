#pragma once

#include <sys/signalfd.h>

#include <optional>

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto::command {

// Receives signals through a descriptor: those that end the job, those that are forwarded, and SIGCHLD. The signals are blocked
// from here on, also in threads made later. Orphaned descendants become children of this process.
class Signals final {
 public:
  static Result<Signals> take_over();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::optional<signalfd_siginfo> next() const;

 private:
  explicit Signals(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

// True for SIGINT, SIGTERM and other signals that are meant for the whole job.
bool ends_job(int number);
// True if the terminal sent it: then every process in the foreground has received it.
bool from_terminal(const signalfd_siginfo& info);

}  // namespace seto::command
