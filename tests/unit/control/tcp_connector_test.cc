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

namespace seto {
namespace {

using testing::ChildProcess;
using testing::Doorway;
using testing::failure_text;
using ::testing::HasSubstr;
using testing::later;
using testing::meet_at;
using testing::Pairing;

#ifdef SETO_SANITIZED
constexpr std::uint64_t kNoticeNs = 5'000'000'000;  // instrumented code on shared cores
#else
constexpr std::uint64_t kNoticeNs = 1'000'000'000;
#endif

// Bytes go both ways, and none was read past the handshake.
void expect_joined(const Result<PrivateFd>& left, const Result<PrivateFd>& right) {
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

TEST(FrontDoor, TwoContextsMeetWhoeverComesFirst) {
  Doorway here;
  Doorway there;
  for (int round = 0; round < 4; ++round) {
    auto right = std::async(std::launch::async, [&] {
      if (round % 2 == 0) poll(nullptr, 0, 30);
      return meet_at(there, here, {2, 1});
    });
    if (round % 2 == 1) poll(nullptr, 0, 30);
    const auto left = meet_at(here, there, {1, 2});
    expect_joined(left, right.get());
  }
}

TEST(FrontDoor, WhatFollowsTheHandshakeIsLeftUnread) {
  Doorway here;
  Doorway there;
  auto right = std::async(std::launch::async, [&] {
    auto socket = meet_at(there, here, {2, 1});
    EXPECT_TRUE(socket.ok() && send(socket->get(), "at once", 7, MSG_NOSIGNAL) == 7);
    return socket;
  });
  auto left = meet_at(here, there, {1, 2});
  ASSERT_TRUE(left.ok()) << left.status().text();
  ASSERT_TRUE(wait_for(left->get(), POLLIN, later()).ok());
  char bytes[8];
  EXPECT_EQ(recv(left->get(), bytes, sizeof bytes, 0), 7);
  EXPECT_TRUE(right.get().ok());
}

TEST(FrontDoor, ManyContextsOfOneProcessAtOnce) {
  Doorway only;
  constexpr ContextId kContexts = 6;
  std::vector<std::thread> threads;
  std::atomic<int> met{0};
  for (ContextId mine = 1; mine <= kContexts; ++mine) {
    threads.emplace_back([&, mine] {
      for (ContextId theirs = 1; theirs <= kContexts; ++theirs) {
        if (theirs == mine) continue;
        const auto socket = meet_at(only, only, {mine, theirs});
        ASSERT_TRUE(socket.ok()) << socket.status().text();
        ++met;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, static_cast<int>(kContexts * (kContexts - 1)));
}

TEST(FrontDoor, SeveralConnectionsOfAPairAreToldApart) {
  Doorway here;
  Doorway there;
  auto right = std::async(std::launch::async, [&] {
    std::vector<PrivateFd> sockets;
    for (const std::uint32_t index : {2U, 0U, 1U}) sockets.push_back(meet_at(there, here, {2, 1, 0, index}).value());
    return sockets;
  });
  // Callers block, so each index has its thread.
  std::vector<std::future<Result<PrivateFd>>> left;
  for (std::uint32_t index = 0; index < 3; ++index)
    left.push_back(std::async(std::launch::async, [&, index] { return meet_at(here, there, {1, 2, 0, index}); }));
  const std::vector<PrivateFd> others = right.get();
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

TEST(FrontDoor, ItselfGarbageAndDeadlines) {
  Doorway here;
  Doorway there;
  EXPECT_EQ(meet_at(here, here, {3, 3}).status().code(), Code::invalid_argument);
  Visit visit{"garbage", kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()};
  EXPECT_THAT(failure_text(here.door->meet(visit)), HasSubstr("address has 7 bytes"));
  visit.remote_address = std::string(here.door->address().size(), 'x');
  EXPECT_THAT(failure_text(here.door->meet(visit)), HasSubstr("is garbage"));
  for (Doorway* one : {&here, &there}) {
    Doorway& other = one == &here ? there : here;
    const auto alone = meet_at(*one, other, {1, 2}, Deadline::after_ms(60));
    EXPECT_EQ(alone.status().code(), Code::timeout);
    EXPECT_THAT(failure_text(alone), HasSubstr("before the deadline of the init"));
  }
}

TEST(FrontDoor, ProcessThatEndedBeforeIsNamedSoon) {
  Doorway here;
  for (int round = 0; round < 4; ++round) {
    std::string address = Doorway().door->address();
    // Sometimes this side calls and sometimes it awaits a call: processes are random.
    const std::uint64_t start = monotonic_ns();
    const auto met = here.door->meet({address, kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
    EXPECT_THAT(failure_text(met), HasSubstr("its process has ended"));
    EXPECT_LT(monotonic_ns() - start, 4'000'000'000U);
  }
}

TEST(FrontDoor, DeclinedAttemptIsToldAtOnceToWhoWaitsAndToWhoComesLater) {
  Doorway here;
  Doorway there;
  for (Doorway* one : {&here, &there}) {
    Doorway& other = one == &here ? there : here;
    const AttemptId attempt = one == &here ? 7 : 8;
    auto waiting = std::async(std::launch::async, [&] { return meet_at(*one, other, {1, 2, attempt}); });
    poll(nullptr, 0, 40);
    other.door->decline(attempt, 2, testing::key_of_test(), failure(Code::timeout, "rank 5 did not come"));
    const std::uint64_t start = monotonic_ns();
    auto failed = waiting.get();
    EXPECT_EQ(failed.status().code(), Code::aborted);
    EXPECT_EQ(failure_text(failed), "rank 5 did not come");
    EXPECT_LT(monotonic_ns() - start, 2'000'000'000U);
    EXPECT_EQ(failure_text(meet_at(*one, other, {1, 2, attempt})), "rank 5 did not come");
  }
}

// To both: who calls is told by who answers, and who awaits a call asks in vain.
TEST(FrontDoor, WrongSecretIsSaid) {
  Doorway here;
  Doorway there;
  const Deadline until = Deadline::after_ms(3'500);
  const auto try_with = [until](Doorway& one, Doorway& other, const char* key, const Pairing& pairing) {
    return failure_text(
        one.door->meet({other.door->address(), kPurposeData, pairing.mine, pairing.theirs, 0, 0, Secret::of_text(key), until}));
  };
  auto right = std::async(std::launch::async, [&] { return try_with(there, here, "kex", {2, 1}); });
  EXPECT_THAT(try_with(here, there, "key", {1, 2}), HasSubstr("knows no job with this secret"));
  EXPECT_THAT(right.get(), HasSubstr("knows no job with this secret"));
}

TEST(FrontDoor, CallerMayComeBeforeTheKeyIsThere) {
  Doorway first;
  Doorway second;
  const bool first_calls = first.door->self().process < second.door->self().process;
  Doorway& caller = first_calls ? first : second;
  Doorway& answerer = first_calls ? second : first;
  auto calling = std::async(std::launch::async, [&] { return meet_at(caller, answerer, {1, 2}); });
  poll(nullptr, 0, 300);
  const auto met = meet_at(answerer, caller, {2, 1});
  expect_joined(calling.get(), met);
}

TEST(FrontDoor, OtherVersionIsRefusedBeforeAnythingIsTried) {
  Doorway here;
  DoorAddress other = here.door->self();
  other.library = "9.9.9";
  const auto met = here.door->meet({encode(other), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
  EXPECT_THAT(failure_text(met), HasSubstr("its library is version 9.9.9, the one here is version"));
}

// The first candidates lead nowhere, or to somebody else.
TEST(FrontDoor, TriesEveryAddressAndRemembersWhichDid) {
  Doorway here;
  Doorway there;
  Doorway stranger;
  DoorAddress many = there.door->self();
  SocketAddress nobody = many.candidates.front();
  nobody.port = 1;
  many.candidates.insert(many.candidates.begin(), {nobody, stranger.door->self().candidates.front()});
  for (int round = 0; round < 2; ++round) {
    auto right = std::async(std::launch::async, [&] { return meet_at(there, here, {2, 1}); });
    const auto left = here.door->meet({encode(many), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
    expect_joined(left, right.get());
  }
}

TEST(FrontDoor, FailureNamesEveryAddressAndWhatWasWrongThere) {
  Doorway here;
  DoorAddress gone = here.door->self();
  gone.process.fill(0xff);
  gone.candidates = {parse_address("127.0.0.1:1").value(), parse_address("127.0.0.1:2").value()};
  const auto met = here.door->meet({encode(gone), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
  EXPECT_THAT(failure_text(met), HasSubstr("its process has ended, or cannot be reached from here"));
  EXPECT_THAT(failure_text(met), HasSubstr("nobody listens at 127.0.0.1:1; nobody listens at 127.0.0.1:2"));
  gone.candidates = here.door->self().candidates;  // ourselves, who are not meant
  const Admission heard = here.door->admit(testing::key_of_test());
  EXPECT_THAT(failure_text(here.door->meet({encode(gone), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()})),
              HasSubstr("another process of this job listens there"));
}

TEST(FrontDoor, KilledProcessIsNoticedByWhoWaitsForIt) {
  for (int round = 0; round < 4; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    ChildProcess child([&] {
      Doorway doorway;
      const std::string& address = doorway.door->address();
      const Admission heard = doorway.door->admit(testing::key_of_test());
      if (write(pipe_ends[1], address.data(), address.size()) != static_cast<ssize_t>(address.size())) return false;
      poll(nullptr, 0, 60'000);
      return true;
    });
    char bytes[2048];
    const ssize_t got = read(pipe_ends[0], bytes, sizeof bytes);
    ASSERT_GT(got, 0);
    Doorway here;
    auto waiting = std::async(std::launch::async, [&] {
      return here.door->meet(
          {std::string(bytes, static_cast<std::size_t>(got)), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
    });
    poll(nullptr, 0, 300);
    const std::uint64_t start = monotonic_ns();
    child.kill_now();
    EXPECT_THAT(failure_text(waiting.get()), HasSubstr("its process has ended"));
    EXPECT_LT(monotonic_ns() - start, kNoticeNs);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
  }
}

TEST(FrontDoor, PortsOfTheRangeAndInterfacesThatAreNone) {
  const auto control = ControlThread::create().value();
  EXPECT_THAT(failure_text(FrontDoor::create(*control, {"no-such-interface", ""})), HasSubstr("no-such-interface"));
  EXPECT_THAT(failure_text(FrontDoor::create(*control, {"lo", "20-10"})), HasSubstr("SETO_PORTS"));
}

TEST(FrontDoor, ForkedChildIsRefused) {
  Doorway here;
  pid_t child = fork();
  if (child == 0) {
    const auto met = here.door->meet({here.door->address(), kPurposeData, 1, 2, 0, 0, testing::key_of_test(), later()});
    _exit(met.status().code() == Code::invalid_usage ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
}

}  // namespace
}  // namespace seto
