// Whoever calls at the front door without belonging to a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/control/network/tcp_authenticator.h"
#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"
#include "tests/support/child_process.h"
#include "tests/support/tcp_connectors.h"

namespace seto {
namespace {

using testing::ChildProcess;
using testing::Doorway;
using testing::failure_text;
using ::testing::HasSubstr;
using testing::later;
using testing::meet_at;

PrivateFd connect_to(const Doorway& doorway) {
  auto fd = connect_tcp(doorway.door->self().candidates.front(), later());
  return fd.ok() ? std::move(fd).value() : PrivateFd();
}

void say(const PrivateFd& fd, std::string_view bytes) {
  static_cast<void>(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

// What comes until the other end closes; "open" if it does not in time.
std::string hear_out(const PrivateFd& fd, std::uint64_t limit_ms = 10'000) {
  const Deadline until = Deadline::after_ms(limit_ms);
  std::string heard;
  while (wait_for(fd.get(), POLLIN, until).ok()) {
    char bytes[4096];
    const ssize_t got = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return heard;
    if (got > 0) heard.append(bytes, static_cast<std::size_t>(got));
  }
  return "open";
}

// A member's visit while strangers are at it; how long it took.
std::uint64_t visit_ns(Doorway& here, Doorway& there, AttemptId attempt) {
  const std::uint64_t start = monotonic_ns();
  auto right = std::async(std::launch::async, [&] { return meet_at(there, here, {2, 1, attempt}); });
  const auto left = meet_at(here, there, {1, 2, attempt});
  const auto other = right.get();
  EXPECT_TRUE(left.ok()) << left.status().text();
  EXPECT_TRUE(other.ok()) << other.status().text();
  return monotonic_ns() - start;
}

TEST(Strangers, GarbageIsClosedAtOnceAndNothingIsSaid) {
  Doorway doorway;
  LogCapture log;
  const PrivateFd stranger = connect_to(doorway);
  say(stranger, "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n");
  EXPECT_EQ(hear_out(stranger), "");
  EXPECT_TRUE(log.contains("closed a connection from 127.0.0.1 that did not prove that it belongs to this job"));
}

TEST(Strangers, SilentAndSlowOnesAreClosedAfterTwoSeconds) {
  Doorway doorway;
  LogCapture log;
  const Admission heard = doorway.door->admit(testing::key_of_test());
  const PrivateFd silent = connect_to(doorway);
  const PrivateFd slow = connect_to(doorway);
  CallerHandshake handshake(testing::key_of_test(), {});
  const std::string hello = handshake.take_out();
  const std::uint64_t start = monotonic_ns();
  // A byte every 100 ms would take 13 s.
  std::atomic<bool> closed{false};
  std::thread dripping([&] {
    for (std::size_t at = 0; at < hello.size() && !closed; ++at) {
      say(slow, std::string_view(hello).substr(at, 1));
      poll(nullptr, 0, 100);
    }
  });
  EXPECT_EQ(hear_out(silent), "");
  EXPECT_EQ(hear_out(slow), "");
  const std::uint64_t took = monotonic_ns() - start;
  closed = true;
  dripping.join();
  EXPECT_GT(took, 1'500'000'000U);
  EXPECT_LT(took, 4'000'000'000U);
  EXPECT_EQ(log.lines().size(), 1U) << "one line for an address in a minute";
}

TEST(Strangers, NoMoreBytesAreReadOfThemThanAHandshakeHas) {
  Doorway doorway;
  const Admission heard = doorway.door->admit(testing::key_of_test());
  const PrivateFd stranger = connect_to(doorway);
  CallerHandshake handshake(testing::key_of_test(), {});
  say(stranger, handshake.take_out() + std::string(kProofSize, 'x') + std::string(100'000, 'y'));
  const std::string heard_bytes = hear_out(stranger);
  EXPECT_LE(heard_bytes.size(), kChallengeSize);
}

TEST(Strangers, RecordedHandshakeIsOfNoUse) {
  Doorway doorway;
  const Admission heard = doorway.door->admit(testing::key_of_test());
  Claim claim;
  claim.answerer = doorway.door->self().process;
  claim.purpose = kPurposeQuestion;
  CallerHandshake handshake(testing::key_of_test(), claim);
  const std::string hello = handshake.take_out();
  const PrivateFd member = connect_to(doorway);
  say(member, hello);
  const auto feed = [&](std::size_t size) {
    std::string got(size, '\0');
    EXPECT_TRUE(wait_for(member.get(), POLLIN, later()).ok());
    EXPECT_EQ(recv(member.get(), got.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return got;
  };
  ASSERT_TRUE(handshake.feed(feed(kGreetingSize)).ok());
  ASSERT_TRUE(handshake.feed(feed(kChallengeSize - kGreetingSize)).ok());
  const std::string proof = handshake.take_out();
  say(member, proof);
  ASSERT_TRUE(handshake.feed(feed(kVerdictSize)).ok());
  EXPECT_TRUE(handshake.accepted());

  LogCapture log;
  const PrivateFd replayed = connect_to(doorway);
  say(replayed, hello + proof);
  EXPECT_EQ(hear_out(replayed).size(), kChallengeSize);
  EXPECT_TRUE(log.contains("could not prove that it has the secret"));
}

TEST(Strangers, TenThousandInARowDoNotHoldUpAMember) {
  Doorway here;
  Doorway there;
  LogCapture log;
  std::atomic<bool> done{false};
  std::atomic<int> count{0};
  // At both doors, and of every kind: those that hang up, those that talk nonsense, those that say nothing and stay.
  std::vector<std::thread> strangers;
  for (Doorway* doorway : {&here, &there}) {
    strangers.emplace_back([&, doorway] {
      std::vector<PrivateFd> staying;
      for (int number = 0; number < 5'000; ++number, ++count) {
        PrivateFd one = connect_to(*doorway);
        if (!one.valid()) continue;
        if (number % 3 == 1) say(one, "nonsense that is long enough to be a greeting");
        if (number % 3 == 2) staying.push_back(std::move(one));
        if (staying.size() > 100) staying.clear();
      }
      if (++count >= 10'000) done = true;
    });
  }
  std::uint64_t longest = 0;
  AttemptId attempt = 0;
  while (!done && attempt < 500) longest = std::max(longest, visit_ns(here, there, ++attempt));
  for (std::thread& thread : strangers) thread.join();
  std::printf("%llu visits meanwhile, the longest %.1f ms\n", static_cast<unsigned long long>(attempt),
              static_cast<double>(longest) * 1e-6);
  EXPECT_GT(attempt, 3U);
  EXPECT_LT(longest, 3'000'000'000U);
  EXPECT_LE(log.lines().size(), 4U);
}

TEST(Strangers, SlowOnesThatFillTheHouseDoNotHoldUpAMember) {
  Doorway here;
  Doorway there;
  LogCapture log;
  std::vector<PrivateFd> slow;
  for (int number = 0; number < 300; ++number) {
    for (const Doorway* doorway : {&here, &there}) {
      slow.push_back(connect_to(*doorway));
      say(slow.back(), "\x50");  // how a greeting begins
    }
  }
  EXPECT_LT(visit_ns(here, there, 1), 1'000'000'000U);
}

// Limits of descriptors are of a process: so in one of its own.
TEST(Strangers, OutOfDescriptorsBothSidesAreToldAndItListensAgain) {
  ChildProcess child([] {
    Doorway here;
    Doorway there;
    const bool here_calls = here.door->self().process < there.door->self().process;
    Doorway& caller = here_calls ? here : there;
    Doorway& answerer = here_calls ? there : here;
    const Admission heard = answerer.door->admit(testing::key_of_test());
    const rlimit few{64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    std::vector<Fd> hoard;
    for (int fd = 0; (fd = dup(0)) >= 0;) hoard.emplace_back(fd);
    hoard.pop_back();  // the caller's own socket
    auto calling = std::async(std::launch::async, [&] { return meet_at(caller, answerer, {1, 2, 1}); });
    const auto answered = meet_at(answerer, caller, {2, 1, 1});
    const auto called = calling.get();
    EXPECT_THAT(failure_text(answered), HasSubstr("out of file descriptors"));
    EXPECT_THAT(failure_text(called), HasSubstr("out of file descriptors"));
    hoard.clear();
    visit_ns(here, there, 2);
    return true;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto
