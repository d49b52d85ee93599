// Connections to the TcpConnector from processes that do not belong to a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
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
#include "tests/support/tries.h"

namespace seto {
namespace {

using testing::ChildProcess;
using testing::connect_to;
using testing::failure_text;
using ::testing::HasSubstr;
using testing::later;
using testing::TestConnector;

PrivateFd connect_to(const TestConnector& connector) {
  auto fd = connect_tcp(connector.connector->self().candidates.front(), later());
  return fd.ok() ? std::move(fd).value() : PrivateFd();
}

void send_bytes(const PrivateFd& fd, std::string_view bytes) {
  static_cast<void>(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

// The bytes that arrive until the other end closes; "open" if it does not close in time.
std::string read_to_end(const PrivateFd& fd, std::uint64_t limit_ms = 30'000) {
  const Deadline until = Deadline::after_ms(limit_ms);
  std::string received;
  while (wait_for(fd.get(), POLLIN, until).ok()) {
    char bytes[4096];
    const ssize_t got = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return received;
    if (got > 0) received.append(bytes, static_cast<std::size_t>(got));
  }
  return "open";
}

// The time of a member's connection while unauthenticated connections are open.
std::uint64_t connect_ns(TestConnector& here, TestConnector& there, AttemptId attempt) {
  const std::uint64_t start = monotonic_ns();
  auto right = std::async(std::launch::async, [&] { return connect_to(there, here, {2, 1, attempt}); });
  const auto left = connect_to(here, there, {1, 2, attempt});
  const auto other = right.get();
  EXPECT_TRUE(left.ok()) << left.status().text();
  EXPECT_TRUE(other.ok()) << other.status().text();
  return monotonic_ns() - start;
}

TEST(UnauthenticatedPeers, GarbageIsClosedAtOnceWithoutAnAnswer) {
  TestConnector connector;
  LogCapture log;
  const PrivateFd connection = connect_to(connector);
  send_bytes(connection, "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n");
  EXPECT_EQ(read_to_end(connection), "");
  EXPECT_TRUE(log.contains("closed a connection from 127.0.0.1 that did not prove that it belongs to this job"));
}

// The time until a silent and a slow connection are closed.
std::uint64_t closed_after_ns() {
  TestConnector connector;
  LogCapture log;
  const Admission admission = connector.connector->admit(testing::key_of_test());
  const std::uint64_t start = monotonic_ns();
  const PrivateFd silent = connect_to(connector);
  const PrivateFd slow = connect_to(connector);
  CallerHandshake handshake(testing::key_of_test(), {});
  const std::string hello = handshake.take_out();
  // A byte every 100 ms would take 13 s.
  std::atomic<bool> closed{false};
  std::thread sending_slowly([&] {
    for (std::size_t at = 0; at < hello.size() && !closed; ++at) {
      send_bytes(slow, std::string_view(hello).substr(at, 1));
      poll(nullptr, 0, 100);
    }
  });
  EXPECT_EQ(read_to_end(silent), "");
  EXPECT_EQ(read_to_end(slow), "");
  const std::uint64_t took = monotonic_ns() - start;
  closed = true;
  sending_slowly.join();
  EXPECT_GT(took, 1'500'000'000U);
  EXPECT_EQ(log.lines().size(), 1U) << "one line for an address in a minute";
  return took;
}

TEST(UnauthenticatedPeers, SilentAndSlowConnectionsAreClosedAfterTwoSeconds) {
  constexpr std::uint64_t kLimitNs = 4'000'000'000;
  EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, closed_after_ns), kLimitNs);
}

TEST(UnauthenticatedPeers, NoMoreBytesThanAHandshakeAreRead) {
  TestConnector connector;
  const Admission admission = connector.connector->admit(testing::key_of_test());
  const PrivateFd connection = connect_to(connector);
  CallerHandshake handshake(testing::key_of_test(), {});
  send_bytes(connection, handshake.take_out() + std::string(kProofSize, 'x') + std::string(100'000, 'y'));
  const std::string answer = read_to_end(connection);
  EXPECT_LE(answer.size(), kChallengeSize);
}

TEST(UnauthenticatedPeers, ARecordedHandshakeIsRejected) {
  TestConnector connector;
  const Admission admission = connector.connector->admit(testing::key_of_test());
  Claim claim;
  claim.answerer = connector.connector->self().process;
  claim.purpose = kPurposeProbe;
  CallerHandshake handshake(testing::key_of_test(), claim, {}, {testing::tls_of_test(), false});
  const std::string hello = handshake.take_out();
  const PrivateFd member = connect_to(connector);
  send_bytes(member, hello);
  const auto feed = [&](std::size_t size) {
    std::string got(size, '\0');
    EXPECT_TRUE(wait_for(member.get(), POLLIN, later()).ok());
    EXPECT_EQ(recv(member.get(), got.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return got;
  };
  ASSERT_TRUE(handshake.feed(feed(kPreambleSize)).ok());
  ASSERT_TRUE(handshake.feed(feed(kChallengeSize - kPreambleSize)).ok());
  const std::string proof = handshake.take_out();
  send_bytes(member, proof);
  ASSERT_TRUE(handshake.feed(feed(kVerdictSize)).ok());
  EXPECT_TRUE(handshake.accepted());

  LogCapture log;
  const PrivateFd replayed = connect_to(connector);
  send_bytes(replayed, hello + proof);
  EXPECT_EQ(read_to_end(replayed).size(), kChallengeSize);
  EXPECT_TRUE(log.contains("could not prove that it has the secret"));
}

// `encrypted`: TLS follows, and never comes.
std::string hello_to(const TestConnector& meant, bool encrypted) {
  Claim claim;
  claim.answerer = meant.connector->self().process;
  claim.purpose = kPurposeProbe;
  return CallerHandshake(testing::key_of_test(), claim, {}, {testing::tls_of_test(), encrypted}).take_out();
}

bool is_open(const PrivateFd& fd) {
  char bytes[4 * kChallengeSize];
  ssize_t got = 1;
  while (got > 0) got = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  return got < 0 && errno == EAGAIN;
}

// Sends each hello on a connection of its own and waits until it is answered or closed. Returns how many connections stay open:
// at most `limit`, unless more still are after some time, which is shorter than that of a silent connection.
std::size_t open_after(const TestConnector& connector, const std::vector<std::string>& hellos, std::size_t limit) {
  std::vector<PrivateFd> connections;
  for (const std::string& hello : hellos) {
    connections.push_back(connect_to(connector));
    send_bytes(connections.back(), hello);
    EXPECT_TRUE(wait_for(connections.back().get(), POLLIN, later()).ok());
  }
  const Deadline until = Deadline::after_ms(kHalfOpenMs / 4);
  std::size_t open = 0;
  do {
    open = static_cast<std::size_t>(std::count_if(connections.begin(), connections.end(), is_open));
    if (open > limit) poll(nullptr, 0, 5);
  } while (open > limit && !until.passed());
  return open;
}

// One overheard hello that is sent again and again used to take all places: each copy counted as a member.
TEST(UnauthenticatedPeers, AHelloThatIsRepeatedTakesNoMorePlacesThanSilence) {
  for (const bool encrypted : {false, true}) {
    TestConnector here;
    TestConnector there;
    LogCapture log;
    const Admission admission = there.connector->admit(testing::key_of_test());
    const std::vector<std::string> copies(kHalfOpenLimitOfAddress + 30, hello_to(there, encrypted));
    constexpr std::size_t kLimit = kHalfOpenLimitOfAddress + 1;  // the original is one more
    EXPECT_LE(open_after(there, copies, kLimit), kLimit) << encrypted;
    connect_ns(here, there, 1);
  }
}

// Those that were overheard on their way to other processes of the job differ from each other.
TEST(UnauthenticatedPeers, HellosForOtherProcessesTakeNoMorePlacesThanSilence) {
  for (const bool encrypted : {false, true}) {
    TestConnector here;
    TestConnector there;
    LogCapture log;
    const Admission admission = there.connector->admit(testing::key_of_test());
    std::vector<std::string> overheard;
    for (std::size_t number = 0; number < kHalfOpenLimitOfAddress + 30; ++number) overheard.push_back(hello_to(here, encrypted));
    EXPECT_LE(open_after(there, overheard, kHalfOpenLimitOfAddress), kHalfOpenLimitOfAddress) << encrypted;
    connect_ns(here, there, 1);
  }
}

// An observer that is faster than the member gains a place, but the member does not lose the handshake.
TEST(UnauthenticatedPeers, AMemberWhoseHelloWasRepeatedFirstStillConnects) {
  for (const bool encrypted : {false, true}) {
    TestConnector connector;
    const Admission admission = connector.connector->admit(testing::key_of_test());
    Claim claim;
    claim.answerer = connector.connector->self().process;
    claim.purpose = kPurposeProbe;
    auto [own, wire] = testing::two_sockets();
    CallerChannel caller(std::move(own), testing::key_of_test(), claim, {testing::tls_of_test(), encrypted});
    AuthProgress progress = caller.advance();
    const std::string hello = testing::take_raw(wire);  // and the first message of TLS
    const PrivateFd observer = connect_to(connector);
    send_bytes(observer, hello);
    ASSERT_TRUE(wait_for(observer.get(), POLLIN, later()).ok());
    const PrivateFd member = connect_to(connector);
    send_bytes(member, hello);
    while (progress == AuthProgress::waiting) {
      ASSERT_TRUE(wait_for(member.get(), POLLIN, later()).ok());
      const std::string got = testing::take_raw(member);
      ASSERT_FALSE(got.empty()) << "closed";
      testing::put_raw(wire, got);
      progress = caller.advance();
      send_bytes(member, testing::take_raw(wire));
    }
    EXPECT_EQ(progress, AuthProgress::over) << caller.why().text();
    EXPECT_TRUE(caller.handshake().accepted());
  }
}

TEST(UnauthenticatedPeers, TenThousandConnectionsDoNotDelayAMember) {
  TestConnector here;
  TestConnector there;
  LogCapture log;
  constexpr std::uint64_t kLimitNs = 3'000'000'000;
  std::atomic<bool> enough{false};  // members have connected
  std::atomic<int> finished{0};
  std::atomic<int> count{0};
  // For both listeners, connections of every kind: some close, some send nonsense, some send nothing and stay open.
  std::vector<std::thread> connecting;
  for (TestConnector* connector : {&here, &there}) {
    connecting.emplace_back([&, connector] {
      std::vector<PrivateFd> staying;
      for (int number = 0; number < 5'000 || !enough; ++number, ++count) {
        PrivateFd one = connect_to(*connector);
        if (!one.valid()) continue;
        if (number % 3 == 1) send_bytes(one, "nonsense that is long enough to be a greeting");
        if (number % 3 == 2) staying.push_back(std::move(one));
        if (staying.size() > 100) staying.clear();
      }
      ++finished;
    });
  }
  std::uint64_t longest = 0;
  AttemptId attempt = 0;
  // A member that happens to come while the machine gives this process no core tries again.
  const auto connect_again = [&] { return connect_ns(here, there, ++attempt); };
  while (finished < 2 && attempt < 500) {
    longest = std::max(longest, testing::least_of(testing::kMostTries, kLimitNs, connect_again));
    if (attempt > 3) enough = true;
  }
  enough = true;
  for (std::thread& thread : connecting) thread.join();
  std::printf("%llu connections of members meanwhile, the longest %.1f ms\n", static_cast<unsigned long long>(attempt),
              static_cast<double>(longest) * 1e-6);
  EXPECT_GT(attempt, 3U);
  EXPECT_GE(count, 10'000);
  EXPECT_LT(longest, kLimitNs);
  EXPECT_LE(log.lines().size(), 4U);
}

// The time of a member's connection at the limit of unauthenticated ones.
std::uint64_t connect_ns_at_the_limit() {
  TestConnector here;
  TestConnector there;
  LogCapture log;
  std::vector<PrivateFd> slow;
  for (int number = 0; number < 300; ++number) {
    for (const TestConnector* connector : {&here, &there}) {
      slow.push_back(connect_to(*connector));
      send_bytes(slow.back(), "\x50");  // the first byte of a preamble
    }
  }
  return connect_ns(here, there, 1);
}

TEST(UnauthenticatedPeers, SlowConnectionsAtTheLimitDoNotDelayAMember) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, connect_ns_at_the_limit), kLimitNs);
}

// The limit of descriptors belongs to a process, so this test runs in a child.
TEST(UnauthenticatedPeers, MissingDescriptorsAreReportedOnBothSidesAndItListensAgain) {
  ChildProcess child([] {
    TestConnector here;
    TestConnector there;
    const bool here_calls = here.connector->self().process < there.connector->self().process;
    TestConnector& caller = here_calls ? here : there;
    TestConnector& answerer = here_calls ? there : here;
    const Admission admission = answerer.connector->admit(testing::key_of_test());
    const rlimit few{64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    std::vector<Fd> taken;
    for (int fd = 0; (fd = dup(0)) >= 0;) taken.emplace_back(fd);
    taken.pop_back();  // a descriptor for the caller's socket
    auto calling = std::async(std::launch::async, [&] { return connect_to(caller, answerer, {1, 2, 1}); });
    const auto answered = connect_to(answerer, caller, {2, 1, 1});
    const auto called = calling.get();
    EXPECT_THAT(failure_text(answered), HasSubstr("out of file descriptors"));
    EXPECT_THAT(failure_text(called), HasSubstr("out of file descriptors"));
    taken.clear();
    connect_ns(here, there, 2);
    return true;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto
