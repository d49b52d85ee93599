#include "src/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>

namespace seto {
namespace {

TEST(Thread, IsDeafToSignalsAndItsMakerIsNot) {
  int blocked = 0;
  auto thread = start_thread("seto-test", [&] {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    blocked = sigismember(&set, SIGUSR1) + sigismember(&set, SIGINT);
  });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_EQ(blocked, 2);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGUSR1), 0);
}

}  // namespace
}  // namespace seto
