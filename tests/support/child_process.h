#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

namespace seto::testing {

// A forked process of a test. The body returns true for success and prints its failures; the child ends with the test. Fork
// before the test starts threads.
class ChildProcess final {
 public:
  explicit ChildProcess(const std::function<bool()>& body) {
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

}  // namespace seto::testing
