#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <utility>

#include "tests/support/own_threads.h"

namespace seto::testing {

// A forked process of a test. The body returns true for success and prints its failures; the child ends with the test. Fork
// before the test starts threads, or while they have nothing to do: the constructor waits for that (see
// wait_until_other_threads_sleep). A child that returns from its body ends at once, as if it were killed: the library's cleanup
// at exit does not run. A body that needs the cleanup ends with exit_like_a_program.
class ChildProcess final {
 public:
  explicit ChildProcess(const std::function<bool()>& body) {
    wait_until_other_threads_sleep();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);
    const bool passed = body() && !::testing::Test::HasFailure();
    std::fflush(nullptr);
    _exit(passed ? 0 : 1);
  }
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (pid_ > 0) kill_now();
  }

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Returns true if the body returned true.
  [[nodiscard]] bool wait() {
    int state = 0;
    const bool waited = pid_ > 0 && waitpid(pid_, &state, 0) == pid_;
    pid_ = -1;
    return waited && WIFEXITED(state) && WEXITSTATUS(state) == 0;
  }

  void kill_now() {
    kill(pid_, SIGKILL);
    static_cast<void>(wait());
  }

 private:
  pid_t pid_ = -1;
};

// Ends a child as a program ends, with the library's cleanup at exit. In particular, the process of rank 0 then tells the other
// ranks why their init failed before it is gone. It is a bool, which the body of a child returns.
inline bool exit_like_a_program(bool passed) { std::exit(passed && !::testing::Test::HasFailure() ? 0 : 1); }

// Holds back children that are forked one after another until the last one is there. Without it, the first ones would give a
// thread of the parent work while the parent forks the next one.
class ForkGate final {
 public:
  ForkGate() {
    if (pipe2(ends_, O_CLOEXEC) != 0) std::abort();
  }
  ~ForkGate() {
    close_end(0);
    close_end(1);
  }
  ForkGate(const ForkGate&) = delete;
  ForkGate& operator=(const ForkGate&) = delete;

  // In each child, before all else: blocks until the parent has opened the gate and every other child waits here too.
  void pass() {
    close_end(1);
    char byte = 0;
    while (read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }
  // In the parent, after the last fork.
  void open() { close_end(1); }

 private:
  void close_end(int which) {
    if (ends_[which] >= 0) close(std::exchange(ends_[which], -1));
  }

  int ends_[2] = {-1, -1};
};

}  // namespace seto::testing
