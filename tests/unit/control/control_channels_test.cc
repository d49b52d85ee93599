#include "src/control/channel/control_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_connectors.h"
#include "tests/support/tries.h"

namespace seto {
namespace {

using ::testing::AnyOf;
using testing::ChildProcess;
using testing::eventually;
using testing::failure_text;
using ::testing::HasSubstr;
using testing::later;
using testing::Pairing;
using testing::request_to;
using ::testing::StartsWith;
using testing::TestConnector;

constexpr LivenessSettings kOff{0, 300};

// With a timeout of some hundred milliseconds a living process may be declared dead, because the machine gave it no core for so
// long. So the tests of frozen processes try longer timeouts after that.
LivenessSettings quick(std::uint64_t timeout_ms) { return {20, timeout_ms}; }
constexpr std::initializer_list<std::uint64_t> kTimeoutsMs = {300, 1'200, 4'000};

void wait_ms(std::uint64_t ms) { poll(nullptr, 0, static_cast<int>(ms)); }

// A process with its connector and its control channels.
struct Station {
  TestConnector connector;
  std::unique_ptr<ControlChannels> channels;
  Admission heard = connector.connector->admit(testing::key_of_test());
  explicit Station(const LivenessSettings& settings = {})
      : channels(ControlChannels::create(*connector.control, *connector.connector, settings).value()) {}
};

Result<std::shared_ptr<ControlChannel>> join(Station& own, Station& remote, const Pairing& pairing, Deadline until = later()) {
  return own.channels->connect(request_to(remote.connector, pairing, until));
}

struct Ends {
  std::shared_ptr<ControlChannel> left;
  std::shared_ptr<ControlChannel> right;
};

Ends join_both(Station& left, Station& right, AttemptId attempt = 0) {
  auto other = std::async(std::launch::async, [&] { return join(right, left, {2, 1, attempt}); });
  auto mine = join(left, right, {1, 2, attempt});
  auto theirs = other.get();
  EXPECT_TRUE(mine.ok()) << mine.status().text();
  EXPECT_TRUE(theirs.ok()) << theirs.status().text();
  if (!mine.ok() || !theirs.ok()) return {};
  return {*mine, *theirs};
}

// The messages that a handler received.
struct Heard {
  std::mutex mutex;
  std::vector<std::string> bytes;
  std::vector<std::uint32_t> from;
  void add(std::uint32_t member, std::string_view what) {
    const std::lock_guard lock(mutex);
    bytes.emplace_back(what);
    from.push_back(member);
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return bytes.size();
  }
};

MessageHandlers::Registration handler(Station& station, const HandlerName& name, Heard& heard, const std::string& answer) {
  return station.channels->handlers().add(
      name, {[answer] { return answer; }, [&heard](std::uint32_t from, std::string_view bytes) { heard.add(from, bytes); }});
}

TEST(ControlChannels, TheOtherControlThreadAnswers) {
  Station left;
  Station right;
  const Ends ends = join_both(left, right);
  ASSERT_TRUE(ends.left && ends.right);
  Heard at_left;
  Heard at_right;
  const auto one = handler(left, {7, 1}, at_left, "of the left");
  const auto two = handler(right, {7, 2}, at_right, "of the right");
  ends.left->ask(7, 2, 1);
  ASSERT_TRUE(eventually([&] { return at_left.count() == 1; }));
  EXPECT_EQ(at_left.bytes[0], "of the right");
  EXPECT_EQ(at_left.from[0], 2U);
  ends.right->ask(7, 1, 2);
  ASSERT_TRUE(eventually([&] { return at_right.count() == 1; }));
  EXPECT_EQ(at_right.bytes[0], "of the left");
  const std::string large(kMessageLimit, 'x');
  ends.right->send_message(7, 1, 2, large);
  ends.right->send_message(7, 1, 2, "after it");
  ASSERT_TRUE(eventually([&] { return at_left.count() == 3; }));
  EXPECT_EQ(at_left.bytes[1], large);
  EXPECT_EQ(at_left.bytes[2], "after it");
}

TEST(ControlChannels, AMissingHandlerIsReported) {
  Station left;
  Station right;
  const Ends ends = join_both(left, right);
  Heard at_left;
  const auto one = handler(left, {7, 1}, at_left, "");
  ends.left->ask(7, 9, 1);
  ASSERT_TRUE(eventually([&] { return at_left.count() == 1; }));
  EXPECT_EQ(at_left.bytes[0], "");
  EXPECT_EQ(at_left.from[0], 9U);
  ends.left->send_message(7, 9, 1, "no receiver");
  ends.left->ask(7, 9, 1);
  EXPECT_TRUE(eventually([&] { return at_left.count() == 2; }));
  EXPECT_FALSE(ends.left->dead() || ends.right->dead());
}

TEST(ControlChannels, ManyContextsOfTwoProcessesShareOne) {
  Station left;
  Station right;
  std::vector<std::future<Result<std::shared_ptr<ControlChannel>>>> lefts;
  std::vector<std::future<Result<std::shared_ptr<ControlChannel>>>> rights;
  for (ContextId context = 1; context <= 8; ++context) {
    lefts.push_back(std::async(std::launch::async, [&, context] { return join(left, right, {context, 100 + context, 5}); }));
    rights.push_back(std::async(std::launch::async, [&, context] { return join(right, left, {100 + context, context, 5}); }));
  }
  std::set<ControlChannel*> all;
  std::vector<std::shared_ptr<ControlChannel>> held;
  for (auto* side : {&lefts, &rights}) {
    for (auto& each : *side) {
      auto channel = each.get();
      ASSERT_TRUE(channel.ok()) << channel.status().text();
      held.push_back(*channel);
      all.insert(held.back().get());
    }
  }
  EXPECT_EQ(all.size(), 2U);
}

TEST(ControlChannels, ContextsOfOneProcessShareOneToo) {
  Station only;
  auto other = std::async(std::launch::async, [&] { return join(only, only, {2, 1}); });
  const auto mine = join(only, only, {1, 2});
  const auto theirs = other.get();
  ASSERT_TRUE(mine.ok()) << mine.status().text();
  ASSERT_TRUE(theirs.ok()) << theirs.status().text();
  Heard heard;
  const auto one = handler(only, {3, 1}, heard, "");
  const auto two = handler(only, {3, 2}, heard, "said");
  mine.value()->ask(3, 2, 1);
  EXPECT_TRUE(eventually([&] { return heard.count() == 1; }));
}

// Repeated, also while the other end still holds, or is about to release, the previous one.
TEST(ControlChannels, AnOrderlyEndIsNotADeathAndTheNextOneIsNew) {
  Station left(quick(20'000));
  Station right(quick(20'000));
  std::shared_ptr<ControlChannel> kept;
  for (AttemptId attempt = 0; attempt < 40; ++attempt) {
    Ends ends = join_both(left, right, attempt);
    ASSERT_TRUE(ends.left && ends.right) << attempt;
    ends.left->send_message(1, 1, 1, "unheard");
    ends.right->send_message(1, 1, 1, "unheard");
    EXPECT_FALSE(kept && kept->dead());
    kept = attempt % 3 == 0 ? ends.left : attempt % 3 == 1 ? ends.right : nullptr;
    auto& first = attempt % 2 == 0 ? ends.left : ends.right;
    first.reset();
    EXPECT_FALSE(kept && kept->dead());
  }
}

TEST(ControlChannels, ADeclinedAttemptIsReportedInBothRoles) {
  Station left;
  Station right;
  const Ends shared = join_both(left, right, 1);
  for (const bool early : {true, false}) {
    for (Station* one : {&left, &right}) {
      Station& other = one == &left ? right : left;
      const AttemptId attempt = 10 + (early ? 1 : 0) + (one == &left ? 2 : 0);
      const auto give_up = [&] {
        other.connector.connector->decline(attempt, 2, testing::key_of_test(), failure(Code::timeout, "rank 5 did not join"));
      };
      if (early) give_up();
      auto waiting = std::async(std::launch::async, [&] { return join(*one, other, {1, 2, attempt}); });
      if (!early) {
        poll(nullptr, 0, 40);
        give_up();
      }
      const auto failed = waiting.get();
      EXPECT_EQ(failed.status().code(), Code::aborted);
      EXPECT_EQ(failure_text(failed), "rank 5 did not join");
    }
  }
}

TEST(ControlChannels, AMissingPeerFailsAtTheDeadline) {
  Station left;
  Station right;
  for (Station* one : {&left, &right}) {
    Station& other = one == &left ? right : left;
    const auto alone = join(*one, other, {1, 2}, Deadline::after_ms(150));
    EXPECT_EQ(alone.status().code(), Code::timeout);
    EXPECT_THAT(failure_text(alone), HasSubstr("before the deadline of the init"));
  }
}

// A child process with a control channel to this one, which it holds until it is killed.
class OtherProcess final {
 public:
  explicit OtherProcess(const LivenessSettings& settings) {
    if (pipe(to_child_) != 0 || pipe(to_parent_) != 0) std::abort();
    child_ = std::make_unique<ChildProcess>([this, settings] { return run(settings); });
  }
  ~OtherProcess() {
    for (const int fd : {to_child_[0], to_child_[1], to_parent_[0], to_parent_[1]}) close(fd);
  }

  // To be called once, after the fork.
  std::shared_ptr<ControlChannel> join(Station& station) {
    const std::string remote = receive(to_parent_[0]);
    say(to_child_[1], station.connector.connector->address());
    auto channel = station.channels->connect({remote, kPurposeControl, 1, 2, 0, 0, testing::key_of_test(), later()});
    EXPECT_TRUE(channel.ok()) << channel.status().text();
    return channel.ok() ? *channel : nullptr;
  }
  // Waits for the child's report why its control channel died.
  std::string childs_reason() { return receive(to_parent_[0]); }
  [[nodiscard]] ChildProcess& process() { return *child_; }

 private:
  static void say(int fd, const std::string& text) {
    if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  }
  static std::string receive(int fd) {
    char bytes[4096];
    const ssize_t got = read(fd, bytes, sizeof bytes);
    return got > 0 ? std::string(bytes, static_cast<std::size_t>(got)) : std::string();
  }
  bool run(const LivenessSettings& settings) {
    Station station(settings);
    say(to_parent_[1], station.connector.connector->address());
    const std::string remote = receive(to_child_[0]);
    auto channel = station.channels->connect({remote, kPurposeControl, 2, 1, 0, 0, testing::key_of_test(), later()});
    if (!channel.ok()) return false;
    if (!eventually([&] { return channel.value()->dead().load(); }, 60'000)) return false;
    say(to_parent_[1], channel.value()->why());
    poll(nullptr, 0, 60'000);
    return true;
  }

  int to_child_[2];
  int to_parent_[2];
  std::unique_ptr<ChildProcess> child_;
};

// The time until the end of a killed process is detected.
std::uint64_t death_noticed_after_ns(const LivenessSettings& settings) {
  OtherProcess other(settings);
  Station here(settings);
  const auto channel = other.join(here);
  if (!channel) return ~std::uint64_t{0};
  std::atomic<int> called{0};
  const auto registration = channel->on_death([&] { ++called; });
  wait_ms(50);
  EXPECT_FALSE(channel->dead()) << channel->why();
  EXPECT_EQ(channel->why(), "");
  const std::uint64_t start = monotonic_ns();
  kill(other.process().pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return called.load() == 1; }));
  const std::uint64_t took = monotonic_ns() - start;
  std::printf("detected after %.1f ms\n", static_cast<double>(took) * 1e-6);
  EXPECT_TRUE(channel->dead());
  EXPECT_THAT(channel->why(), StartsWith("its process has ended"));
  // A callback that is registered late is called too.
  std::atomic<int> late{0};
  const auto another = channel->on_death([&] { ++late; });
  EXPECT_TRUE(eventually([&] { return late.load() == 1; }));
  EXPECT_EQ(called, 1);
  return took;
}

TEST(ControlChannels, AKilledProcessIsDetectedAtOnce) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  for (const LivenessSettings& settings : {LivenessSettings{}, kOff})
    EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, [&] { return death_noticed_after_ns(settings); }), kLimitNs);
}

// `site`: where it is; its kernel acknowledges what is sent to it, so no process is patient with it at another site either.
void expect_frozen_process_is_lost(const char* site) {
  const auto attempt = [site](std::uint64_t timeout_ms) -> std::string {
    OtherProcess other(quick(timeout_ms));
    Station here(quick(timeout_ms));
    const auto channel = other.join(here);
    if (!channel) return "no connection";
    if (*site != '\0') channel->at_site(site, 60'000);
    wait_ms(2 * timeout_ms);  // while heartbeats arrive
    if (channel->dead()) return channel->why();
    const std::uint64_t start = monotonic_ns();
    kill(other.process().pid(), SIGSTOP);
    EXPECT_TRUE(eventually([&] { return channel->dead().load(); }));
    const std::uint64_t took = monotonic_ns() - start;
    std::printf("detected after %.1f ms\n", static_cast<double>(took) * 1e-6);
    // The last heartbeat may be older than the stop, because the machine had given the core to others.
    if (took < (timeout_ms - 50) * 1'000'000) return "detected before the timeout";
    EXPECT_THAT(channel->why(), StartsWith("its process gave no sign of life for "));
    EXPECT_THAT(channel->why(), HasSubstr(" s (SETO_LIVENESS_TIMEOUT_MS)"));
    kill(other.process().pid(), SIGCONT);
    return testing::lacks(other.childs_reason(), "its process considers this one lost: it gave no sign of life");
  };
  EXPECT_EQ(testing::with_growing_time(attempt, kTimeoutsMs), "");
}

TEST(ControlChannels, AFrozenProcessIsDetectedAndFailsWhenItContinues) { expect_frozen_process_is_lost(""); }

TEST(ControlChannels, AFrozenProcessOfAnotherSiteIsDetectedToo) { expect_frozen_process_is_lost("tokyo"); }

// The process that was stopped must not blame the others, because it did not read their heartbeats.
TEST(ControlChannels, AStoppedProcessBlamesNobody) {
  const auto attempt = [](std::uint64_t timeout_ms) -> std::string {
    OtherProcess other(quick(timeout_ms));
    Station here(kOff);  // answers heartbeats and expects none
    const auto channel = other.join(here);
    if (!channel) return "no connection";
    for (int round = 0; round < 3; ++round) {
      wait_ms(60);
      kill(other.process().pid(), SIGSTOP);
      wait_ms(2 * timeout_ms);
      kill(other.process().pid(), SIGCONT);
      wait_ms(200);
      if (channel->dead()) return channel->why();
    }
    return {};
  };
  EXPECT_EQ(testing::with_growing_time(attempt, kTimeoutsMs), "");
}

TEST(ControlChannels, WithoutHeartbeatsNothingIsSentAndNobodyIsFrozen) {
  OtherProcess other(kOff);
  Station here(kOff);
  const auto channel = other.join(here);
  kill(other.process().pid(), SIGSTOP);
  poll(nullptr, 0, 600);
  EXPECT_FALSE(channel->dead());
  kill(other.process().pid(), SIGCONT);
}

TEST(ControlChannels, AProcessThatReadsNothingIsLostWithoutBlockingOthers) {
  OtherProcess other(kOff);
  Station here(kOff);
  const auto channel = other.join(here);
  kill(other.process().pid(), SIGSTOP);
  for (int count = 0; count < 100'000; ++count) channel->ask(1, 2, 3);
  EXPECT_FALSE(channel->dead()) << "heartbeats are dropped";
  const std::string news(kMessageLimit, 'x');
  for (int count = 0; count < 10'000 && !channel->dead(); ++count) channel->send_message(1, 2, 3, news);
  EXPECT_TRUE(channel->dead());
  EXPECT_THAT(channel->why(), HasSubstr("reads nothing: 32 MiB of control messages wait"));
  kill(other.process().pid(), SIGCONT);
}

TEST(ControlChannels, ARemovedDeathCallbackIsNotCalledAndMayRemoveItself) {
  OtherProcess other({});
  Station here;
  const auto channel = other.join(here);
  std::atomic<int> called{0};
  channel->on_death([&] { ++called; }).reset();
  std::mutex mutex;
  std::unique_ptr<ControlChannel::OnDeath> itself;
  std::atomic<bool> done{false};
  {
    const std::lock_guard lock(mutex);
    itself = channel->on_death([&] {
      const std::lock_guard held(mutex);
      itself.reset();
      done = true;
    });
  }
  other.process().kill_now();
  EXPECT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(called, 0);
}

TEST(ControlChannels, ARemovedHandlerIsNotCalledAnyMore) {
  Station left;
  Station right;
  const Ends ends = join_both(left, right);
  std::atomic<bool> stop{false};
  std::thread asker([&] {
    while (!stop) {
      ends.left->send_message(5, 1, 2, "x");
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    auto registration = right.channels->handlers().add(
        {5, 1}, {[] { return std::string(); }, [raw = alive.get()](std::uint32_t, std::string_view) { ++*raw; }});
    std::this_thread::yield();
  }
  stop = true;
  asker.join();
}

}  // namespace
}  // namespace seto
