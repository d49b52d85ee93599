#include "src/control/network/tcp_connector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/net/local_socket.h"
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
using testing::Pairing;
using testing::TestConnector;

// Checks that bytes arrive in both directions, and that none was read beyond the handshake.
void expect_joined(const Result<SecureStream>& left, const Result<SecureStream>& right) {
  ASSERT_TRUE(left.ok()) << left.status().text();
  ASSERT_TRUE(right.ok()) << right.status().text();
  const int pairs[2][2] = {{left.value().get(), right.value().get()}, {right.value().get(), left.value().get()}};
  for (const auto& pair : pairs) {
    ASSERT_EQ(send(pair[0], "hello", 5, MSG_NOSIGNAL), 5);
    ASSERT_TRUE(wait_for(pair[1], POLLIN, later()).ok());
    char bytes[8];
    EXPECT_EQ(recv(pair[1], bytes, sizeof bytes, 0), 5);
  }
}

TEST(TcpConnector, TwoContextsConnectInEitherOrder) {
  TestConnector here;
  TestConnector there;
  for (int round = 0; round < 4; ++round) {
    auto right = std::async(std::launch::async, [&] {
      if (round % 2 == 0) poll(nullptr, 0, 30);
      return connect_to(there, here, {2, 1});
    });
    if (round % 2 == 1) poll(nullptr, 0, 30);
    const auto left = connect_to(here, there, {1, 2});
    expect_joined(left, right.get());
  }
}

TEST(TcpConnector, DataAfterTheHandshakeIsLeftUnread) {
  TestConnector here;
  TestConnector there;
  auto right = std::async(std::launch::async, [&] {
    auto socket = connect_to(there, here, {2, 1});
    EXPECT_TRUE(socket.ok() && send(socket->get(), "at once", 7, MSG_NOSIGNAL) == 7);
    return socket;
  });
  auto left = connect_to(here, there, {1, 2});
  ASSERT_TRUE(left.ok()) << left.status().text();
  ASSERT_TRUE(wait_for(left->get(), POLLIN, later()).ok());
  char bytes[8];
  EXPECT_EQ(recv(left->get(), bytes, sizeof bytes, 0), 7);
  EXPECT_TRUE(right.get().ok());
}

TEST(TcpConnector, ManyContextsOfOneProcessAtOnce) {
  TestConnector only;
  constexpr ContextId kContexts = 6;
  std::vector<std::thread> threads;
  std::atomic<int> met{0};
  for (ContextId mine = 1; mine <= kContexts; ++mine) {
    threads.emplace_back([&, mine] {
      for (ContextId theirs = 1; theirs <= kContexts; ++theirs) {
        if (theirs == mine) continue;
        const auto socket = connect_to(only, only, {mine, theirs});
        ASSERT_TRUE(socket.ok()) << socket.status().text();
        ++met;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, static_cast<int>(kContexts * (kContexts - 1)));
}

TEST(TcpConnector, SeveralConnectionsOfAPairAreDistinguished) {
  TestConnector here;
  TestConnector there;
  auto right = std::async(std::launch::async, [&] {
    std::vector<SecureStream> sockets;
    for (const std::uint32_t index : {2U, 0U, 1U}) sockets.push_back(connect_to(there, here, {2, 1, 0, index}).value());
    return sockets;
  });
  // Callers block, so each index has its own thread.
  std::vector<std::future<Result<SecureStream>>> left;
  for (std::uint32_t index = 0; index < 3; ++index)
    left.push_back(std::async(std::launch::async, [&, index] { return connect_to(here, there, {1, 2, 0, index}); }));
  const std::vector<SecureStream> others = right.get();
  const std::vector<std::size_t> place = {1, 2, 0};
  for (std::size_t index = 0; index < 3; ++index) {
    const auto mine = left[index].get();
    ASSERT_TRUE(mine.ok()) << mine.status().text();
    ASSERT_EQ(send(mine.value().get(), "x", 1, MSG_NOSIGNAL), 1);
    EXPECT_TRUE(wait_for(others[place[index]].get(), POLLIN, later()).ok());
    char byte = 0;
    EXPECT_EQ(recv(others[place[index]].get(), &byte, 1, 0), 1);
  }
}

TEST(TcpConnector, ItselfGarbageAndDeadlines) {
  TestConnector here;
  TestConnector there;
  EXPECT_EQ(connect_to(here, here, {3, 3}).status().code(), Code::invalid_argument);
  ConnectRequest request{"garbage", kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()};
  EXPECT_THAT(failure_text(here.connector->connect(request)), HasSubstr("address has 7 bytes"));
  request.remote_address = std::string(here.connector->address().size(), 'x');
  EXPECT_THAT(failure_text(here.connector->connect(request)), HasSubstr("is malformed"));
  for (TestConnector* one : {&here, &there}) {
    TestConnector& other = one == &here ? there : here;
    const auto alone = connect_to(*one, other, {1, 2}, Deadline::after_ms(60));
    EXPECT_EQ(alone.status().code(), Code::timeout);
    EXPECT_THAT(failure_text(alone), HasSubstr("before the deadline of the init"));
  }
}

TEST(TcpConnector, AnEndedProcessIsNamedSoon) {
  TestConnector here;
  constexpr std::uint64_t kLimitNs = 4'000'000'000;
  for (int round = 0; round < 4; ++round) {
    std::string address = TestConnector().connector->address();
    // Process ids are random, so this side sometimes connects and sometimes waits for a connection.
    const auto measure = [&] {
      const std::uint64_t start = monotonic_ns();
      const auto met = here.connector->connect({address, kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
      EXPECT_THAT(failure_text(met), HasSubstr("its process has ended"));
      return monotonic_ns() - start;
    };
    EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, measure), kLimitNs);
  }
}

TEST(TcpConnector, ADeclinedAttemptIsReportedToWaitingAndLateContexts) {
  TestConnector here;
  TestConnector there;
  constexpr std::uint64_t kLimitNs = 2'000'000'000;
  AttemptId attempt = 6;
  for (TestConnector* one : {&here, &there}) {
    TestConnector& other = one == &here ? there : here;
    const auto measure = [&] {
      ++attempt;
      auto waiting = std::async(std::launch::async, [&] { return connect_to(*one, other, {1, 2, attempt}); });
      poll(nullptr, 0, 40);
      other.connector->decline(attempt, 2, testing::key_of_test(), failure(Code::timeout, "rank 5 did not join"));
      const std::uint64_t start = monotonic_ns();
      auto failed = waiting.get();
      const std::uint64_t took = monotonic_ns() - start;
      EXPECT_EQ(failed.status().code(), Code::aborted);
      EXPECT_EQ(failure_text(failed), "rank 5 did not join");
      EXPECT_EQ(failure_text(connect_to(*one, other, {1, 2, attempt})), "rank 5 did not join");
      return took;
    };
    EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, measure), kLimitNs);
  }
}

// On both sides: the connecting side learns it from the answer; the waiting side times out.
TEST(TcpConnector, AWrongSecretIsReported) {
  const auto attempt = [](std::uint64_t ms) {
    TestConnector here;
    TestConnector there;
    const Deadline until = Deadline::after_ms(ms);
    const auto try_with = [until](TestConnector& one, TestConnector& other, const char* key, const Pairing& pairing) {
      return failure_text(one.connector->connect(
          {other.connector->address(), kPurposeData, pairing.mine, pairing.theirs, 0, 0, Secret::of_text(key), until}));
    };
    auto right = std::async(std::launch::async, [&] { return try_with(there, here, "kex", {2, 1}); });
    const std::string left = try_with(here, there, "key", {1, 2});
    constexpr const char* kExpected = "has no job with this secret";
    return testing::lacks(left, kExpected) + testing::lacks(right.get(), kExpected);
  };
  EXPECT_EQ(testing::with_growing_time(attempt, {3'500, 8'000, 20'000}), "");
}

TEST(TcpConnector, AConnectionMayArriveBeforeItsKey) {
  TestConnector first;
  TestConnector second;
  const bool first_calls = first.connector->self().process < second.connector->self().process;
  TestConnector& caller = first_calls ? first : second;
  TestConnector& answerer = first_calls ? second : first;
  auto calling = std::async(std::launch::async, [&] { return connect_to(caller, answerer, {1, 2}); });
  poll(nullptr, 0, 300);
  const auto met = connect_to(answerer, caller, {2, 1});
  expect_joined(calling.get(), met);
}

TEST(TcpConnector, AnotherVersionIsRejectedFirst) {
  TestConnector here;
  ListenAddress other = here.connector->self();
  other.library = "9.9.9";
  const auto met = here.connector->connect({encode(other), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
  EXPECT_THAT(failure_text(met), HasSubstr("its library is version 9.9.9, the one here is version"));
}

// The first candidates are unreachable, or belong to another process.
TEST(TcpConnector, TriesEveryAddressAndRemembersTheOneThatWorked) {
  TestConnector here;
  TestConnector there;
  TestConnector other_process;
  ListenAddress many = there.connector->self();
  SocketAddress unreachable = many.candidates.front();
  unreachable.port = 1;
  many.candidates.insert(many.candidates.begin(), {unreachable, other_process.connector->self().candidates.front()});
  for (int round = 0; round < 2; ++round) {
    auto right = std::async(std::launch::async, [&] { return connect_to(there, here, {2, 1}); });
    const auto left = here.connector->connect({encode(many), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
    expect_joined(left, right.get());
  }
}

// Whichever of the two has the smaller number: the one that can only dial is the caller.
TEST(TcpConnector, AProcessThatOnlyDialsIsTheCaller) {
  TestConnector open;
  TestConnector closed({.interfaces = "lo", .ports = "", .tls = testing::tls_of_test(), .dial_only = true});
  for (const Pairing& pairing : {Pairing{1, 2}, Pairing{2, 1}}) {
    const auto from_open = open.connector->plan(request_to(closed, pairing));
    const auto from_closed = closed.connector->plan(request_to(open, {pairing.theirs, pairing.mine}));
    ASSERT_TRUE(from_open.ok() && from_closed.ok());
    EXPECT_FALSE(from_open.value().calls);
    EXPECT_TRUE(from_closed.value().calls);
    EXPECT_EQ(from_open.value().claim, from_closed.value().claim);
    auto right = std::async(std::launch::async, [&] { return connect_to(closed, open, {pairing.theirs, pairing.mine}); });
    const auto left = connect_to(open, closed, pairing);
    expect_joined(left, right.get());
  }
}

// Its addresses lead nowhere, which a probe would take for its end.
TEST(TcpConnector, AProcessThatOnlyDialsIsNotAsked) {
  TestConnector open;
  TestConnector closed({.interfaces = "lo", .ports = "", .tls = testing::tls_of_test(), .dial_only = true});
  ListenAddress hidden = closed.connector->self();
  hidden.candidates = {parse_address("127.0.0.1:1").value()};
  auto left = std::async(std::launch::async, [&] {
    return open.connector->connect({encode(hidden), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
  });
  EXPECT_EQ(left.wait_for(std::chrono::seconds(2)), std::future_status::timeout) << failure_text(left.get());
  auto right = connect_to(closed, open, {2, 1});
  expect_joined(left.get(), right);
  const auto late =
      open.connector->connect({encode(hidden), kPurposeData, 1, 2, 1, 0, testing::key_of_test(), Deadline::after_ms(200)});
  EXPECT_THAT(failure_text(late), HasSubstr("it cannot be asked, because it only dials out (SETO_DIAL_ONLY)"));
}

TEST(TcpConnector, WhatHelpsAgainstFirewallsIsSaid) {
  TestConnector open;
  TestConnector closed({.interfaces = "lo", .ports = "", .tls = testing::tls_of_test(), .dial_only = true});
  const auto failure_of = [](const TestConnector& here, bool dial_only) {
    ListenAddress gone = here.connector->self();
    gone.process.fill(0xff);
    gone.candidates = {parse_address("127.0.0.1:1").value()};
    gone.dial_only = dial_only;
    return failure_text(here.connector->connect({encode(gone), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()}));
  };
  EXPECT_THAT(failure_of(open, false), HasSubstr("set SETO_DIAL_ONLY=on there"));
  EXPECT_THAT(failure_of(closed, true), HasSubstr("SETO_DIAL_ONLY=on at both"));
}

TEST(TcpConnector, FailureNamesEveryAddressWithItsReason) {
  TestConnector here;
  ListenAddress gone = here.connector->self();
  gone.process.fill(0xff);
  gone.candidates = {parse_address("127.0.0.1:1").value(), parse_address("127.0.0.1:2").value()};
  const auto met = here.connector->connect({encode(gone), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
  EXPECT_THAT(failure_text(met), HasSubstr("its process has ended, or cannot be reached from here"));
  EXPECT_THAT(failure_text(met), HasSubstr("no process listens at 127.0.0.1:1; no process listens at 127.0.0.1:2"));
  gone.candidates = here.connector->self().candidates;  // this process, which is not the target
  const Admission heard = here.connector->admit(testing::key_of_test());
  EXPECT_THAT(failure_text(here.connector->connect({encode(gone), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()})),
              HasSubstr("another process of this job listens there"));
}

// The time until a context that waits for a killed process detects its end.
std::uint64_t death_noticed_after_ns() {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  ChildProcess child([&] {
    TestConnector connector;
    const std::string& address = connector.connector->address();
    const Admission heard = connector.connector->admit(testing::key_of_test());
    if (write(pipe_ends[1], address.data(), address.size()) != static_cast<ssize_t>(address.size())) return false;
    poll(nullptr, 0, 60'000);
    return true;
  });
  char bytes[2048];
  const ssize_t got = read(pipe_ends[0], bytes, sizeof bytes);
  if (got <= 0) return ADD_FAILURE() << "the child has no address", ~std::uint64_t{0};
  TestConnector here;
  auto waiting = std::async(std::launch::async, [&] {
    return here.connector->connect(
        {std::string(bytes, static_cast<std::size_t>(got)), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
  });
  poll(nullptr, 0, 300);
  const std::uint64_t start = monotonic_ns();
  child.kill_now();
  EXPECT_THAT(failure_text(waiting.get()), HasSubstr("its process has ended"));
  const std::uint64_t took = monotonic_ns() - start;
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return took;
}

TEST(TcpConnector, AKilledProcessIsDetectedByAWaitingContext) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  for (int round = 0; round < 4; ++round)
    EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, death_noticed_after_ns), kLimitNs);
}

TEST(TcpConnector, InvalidPortRangesAndInterfacesAreRejected) {
  const auto control = ControlThread::create().value();
  EXPECT_THAT(failure_text(TcpConnector::create(*control, {"no-such-interface", ""})), HasSubstr("no-such-interface"));
  EXPECT_THAT(failure_text(TcpConnector::create(*control, {"lo", "20-10"})), HasSubstr("SETO_PORTS"));
}

TEST(TcpConnector, AForkedChildIsRejected) {
  TestConnector here;
  ChildProcess child([&] {
    const auto met =
        here.connector->connect({here.connector->address(), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
    return met.status().code() == Code::invalid_usage;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto
