#include "src/core/dump/dump_signal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A dump must not let a job survive its scheduler's SIGTERM.
TEST(DumpSignal, rejects_signals_with_another_meaning) {
  for (const int signal : {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGALRM, SIGPROF, SIGCHLD,
                           SIGPIPE, SIGSEGV, SIGABRT, SIGTRAP, SIGXCPU, SIGKILL, SIGSTOP, 32,      64 + 1,  -1}) {
    struct sigaction before {};
    struct sigaction after {};
    const bool real = sigaction(signal, nullptr, &before) == 0;
    const Status status = add_to_on_signal(-1, signal);
    EXPECT_EQ(status.code(), Code::invalid_argument) << signal;
    EXPECT_THAT(std::string(status.text()), AllOf(HasSubstr("SETO_DUMP_SIGNAL=" + std::to_string(signal) + ":"),
                                                  HasSubstr("SIGUSR1 (10), SIGUSR2 (12), or one of SIGRTMIN to SIGRTMAX (")));
    if (!real) continue;
    ASSERT_EQ(sigaction(signal, nullptr, &after), 0);
    EXPECT_EQ(before.sa_handler, after.sa_handler) << signal;
  }
}

}  // namespace
}  // namespace seto
