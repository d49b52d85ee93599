#include "src/control/control_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/child_process.h"
#include "tests/support/tries.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;

constexpr auto kPatience = std::chrono::seconds(30);

// A full queue counts as success.
bool say_something(int socket) { return send(socket, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN; }

struct Pair {
  Pair() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    mine = Fd(ends[0]);
    theirs = Fd(ends[1]);
  }
  Fd mine;
  Fd theirs;
};

// A callback that can be waited for.
struct Signal {
  std::promise<void> promise;
  std::future<void> future = promise.get_future();
  [[nodiscard]] bool came() { return future.wait_for(kPatience) == std::future_status::ready; }
};

TEST(ControlThread, ReportsHangUpOnceAndDataNever) {
  auto control = ControlThread::create().value();
  Pair pair;
  Signal signal;
  std::atomic<int> calls{0};
  auto watch = control->watch(pair.mine.get(), [&] {
    if (++calls == 1) signal.promise.set_value();
  });
  ASSERT_TRUE(watch.ok());
  for (int index = 0; index < 100; ++index) EXPECT_TRUE(say_something(pair.theirs.get()));
  EXPECT_TRUE(say_something(pair.mine.get()));
  // The event of another descriptor, added later, proves that the loop could have seen the data.
  const Fd event(eventfd(1, EFD_CLOEXEC));
  Signal seen;
  auto marker = control->add(event.get(), EPOLLIN | EPOLLONESHOT, [&](std::uint32_t) { seen.promise.set_value(); });
  ASSERT_TRUE(marker.ok() && seen.came());
  EXPECT_EQ(calls, 0);
  pair.theirs.close();
  EXPECT_TRUE(signal.came());
  EXPECT_FALSE(say_something(pair.mine.get()));
  EXPECT_EQ(calls, 1);
}

TEST(ControlThread, ReportsAnEarlierHangUp) {
  auto control = ControlThread::create().value();
  Pair pair;
  pair.theirs.close();
  Signal signal;
  auto watch = control->watch(pair.mine.get(), [&] { signal.promise.set_value(); });
  EXPECT_TRUE(signal.came());
}

// The time until the end of a killed peer is detected.
std::uint64_t noticed_after_ns() {
  Pair pair;
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  ChildProcess peer([&] {
    pair.mine.close();
    if (!say_something(pair.theirs.get()) || write(ready[1], "x", 1) != 1) return false;
    pause();
    return false;
  });
  pair.theirs.close();
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  auto control = ControlThread::create().value();
  Signal signal;
  std::atomic<std::uint64_t> noticed{0};
  auto watch = control->watch(pair.mine.get(), [&] {
    noticed = monotonic_ns();
    signal.promise.set_value();
  });
  const std::uint64_t killed = monotonic_ns();
  kill(peer.pid(), SIGKILL);
  EXPECT_TRUE(signal.came());
  watch->remove();
  std::printf("hang-up of a killed process noticed after %llu us\n", static_cast<unsigned long long>((noticed - killed) / 1'000));
  close(ready[0]);
  close(ready[1]);
  return noticed - killed;
}

TEST(ControlThread, AKilledPeerIsDetectedBehindUnreadData) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, noticed_after_ns), kLimitNs);
}

TEST(ControlThread, RemovingWaitsForTheRunningHandler) {
  auto control = ControlThread::create().value();
  Pair pair;
  Signal entered;
  std::promise<void> leave;
  std::atomic<bool> left{false};
  auto watch = control->watch(pair.mine.get(), [&] {
    entered.promise.set_value();
    leave.get_future().wait();
    left = true;
  });
  ASSERT_TRUE(watch.ok());
  pair.theirs.close();
  ASSERT_TRUE(entered.came());
  auto removal = std::async(std::launch::async, [&] {
    watch->remove();
    return left.load();
  });
  EXPECT_EQ(removal.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  leave.set_value();
  EXPECT_TRUE(removal.get());
}

TEST(ControlThread, HandlerMayRemoveItself) {
  auto control = ControlThread::create().value();
  const Fd event(eventfd(1, EFD_CLOEXEC));
  Signal signal;
  std::optional<Watch> self;
  std::promise<void> stored;
  auto registration = control->add(event.get(), EPOLLIN, [&](std::uint32_t) {
    stored.get_future().wait();
    self->remove();
    signal.promise.set_value();
  });
  ASSERT_TRUE(registration.ok());
  self.emplace(std::move(registration).value());
  stored.set_value();
  EXPECT_TRUE(signal.came());
}

TEST(ControlThread, ManyThreadsWatchAndRemove) {
  auto control = ControlThread::create().value();
  std::vector<std::thread> threads;
  std::atomic<int> told{0};
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        Pair pair;
        Signal signal;
        auto watch = control->watch(pair.mine.get(), [&] {
          ++told;
          signal.promise.set_value();
        });
        ASSERT_TRUE(watch.ok());
        if (round % 2 == 0) {
          pair.theirs.close();
          ASSERT_TRUE(signal.came());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 4 * 50);
}

TEST(ControlThread, AStoppedThreadRejectsCalls) {
  auto control = ControlThread::create().value();
  Pair pair;
  auto watch = control->watch(pair.mine.get(), [] {});
  ASSERT_TRUE(watch.ok());
  control->stop();
  control->stop();
  EXPECT_EQ(control->watch(pair.mine.get(), [] {}).status().code(), Code::invalid_usage);
  watch->remove();
}

TEST(ControlThread, ClosedDescriptorIsAnError) {
  auto control = ControlThread::create().value();
  EXPECT_EQ(control->watch(-1, [] {}).status().code(), Code::unavailable);
}

TEST(ControlThread, TheProcessWideOneFailsInAForkedChildAndEndsAtExit) {
  ChildProcess user([] {
    ControlThread* const control = ControlThread::of_process().value();
    EXPECT_EQ(ControlThread::of_process().value(), control);
    Pair pair;
    auto watch = control->watch(pair.mine.get(), [] {});
    EXPECT_TRUE(watch.ok());
    ChildProcess child([&] {
      EXPECT_THAT(std::string(ControlThread::of_process().status().text()), HasSubstr("was forked"));
      EXPECT_THAT(std::string(control->watch(pair.mine.get(), [] {}).status().text()), HasSubstr("was forked"));
      watch->remove();
      std::fflush(nullptr);
      exit(::testing::Test::HasFailure() ? 1 : 0);
      return true;
    });
    EXPECT_TRUE(child.wait());
    std::fflush(nullptr);
    exit(::testing::Test::HasFailure() ? 1 : 0);
    return true;
  });
  EXPECT_TRUE(user.wait());
}

}  // namespace
}  // namespace seto
