#pragma once

#include <sys/signalfd.h>

#include <optional>

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto::command {

// Signals of this process as a descriptor: those that end it, those that it hands on, and the ends of children. They are blocked
// from here on; threads made later inherit that. Descendants that lose their parent become children of this process.
class Signals final {
 public:
  static Result<Signals> take_over();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::optional<signalfd_siginfo> next() const;

 private:
  explicit Signals(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

// SIGINT, SIGTERM and the like, which a user means for the job as a whole.
bool ends_job(int number);
// From the keyboard: the terminal has sent it to every process in the foreground.
bool from_terminal(const signalfd_siginfo& info);

}  // namespace seto::command
