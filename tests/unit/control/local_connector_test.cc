#include "src/control/local/local_connector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
#include "tests/support/tries.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;

Deadline later() { return Deadline::after_ms(30'000); }

// The control plane of a process. It ends with the test.
struct Plane {
  std::unique_ptr<ControlThread> control = ControlThread::create().value();
  std::unique_ptr<LocalConnector> point = LocalConnector::create(*control).value();
};

// Memory that can be identified: its size is the context's number.
Fd memory_of(ContextId context) {
  Fd fd(memfd_create("test", MFD_CLOEXEC));
  if (ftruncate(fd.get(), static_cast<off_t>(context)) != 0) std::abort();
  return fd;
}

ContextId context_of(const Fd& memory) {
  struct stat state {};
  return fstat(memory.get(), &state) == 0 ? static_cast<ContextId>(state.st_size) : 0;
}

Result<LocalConnection> meet(LocalConnector& point, const std::string& remote, ContextId mine, ContextId theirs,
                             Deadline until = later()) {
  const Fd memory = memory_of(mine);
  return point.connect({remote, mine, theirs, {memory.get()}, until});
}

std::string text_of(const Result<LocalConnection>& connection) { return std::string(connection.status().text()); }

void expect_passes(const PrivateFd& from, const PrivateFd& to) {
  char word[8] = {};
  EXPECT_EQ(send(from.get(), "word", 4, MSG_DONTWAIT), 4);
  EXPECT_TRUE(wait_for(to.get(), POLLIN, later()).ok());
  EXPECT_EQ(recv(to.get(), word, sizeof word, MSG_DONTWAIT), 4);
}

// Checks that each end receives what the other sends, and that both hold the other's memory.
void expect_joined(const Result<LocalConnection>& left, const Result<LocalConnection>& right, ContextId left_context,
                   ContextId right_context) {
  ASSERT_TRUE(left.ok()) << text_of(left);
  ASSERT_TRUE(right.ok()) << text_of(right);
  EXPECT_EQ(context_of(left.value().descriptors.at(0)), right_context);
  EXPECT_EQ(context_of(right.value().descriptors.at(0)), left_context);
  expect_passes(left.value().socket, right.value().socket);
  expect_passes(right.value().socket, left.value().socket);
}

// An address that every other process connects to, because its bytes sort last. The name is random behind the first letters,
// because this test may run in several processes at once.
ProcessAddress impostors_address() {
  ProcessAddress address{"seto-zzzz-" + random_socket_name(), {}};
  address.token.fill(0xff);
  return address;
}

TEST(LocalConnector, TwoContextsConnectInEitherOrder) {
  Plane here;
  Plane there;
  for (const ContextId late : {1U, 2U}) {
    auto right = std::async(std::launch::async, [&] {
      if (late == 2) poll(nullptr, 0, 30);
      return meet(*there.point, here.point->address(), 2, 1);
    });
    if (late == 1) poll(nullptr, 0, 30);
    const auto left = meet(*here.point, there.point->address(), 1, 2);
    expect_joined(left, right.get(), 1, 2);
  }
}

TEST(LocalConnector, MemoryOfManyContextsArrivesInOrder) {
  Plane here;
  Plane there;
  for (const auto& [few, many] : {std::pair{std::size_t{0}, std::size_t{300}}, {std::size_t{257}, std::size_t{1}}}) {
    const auto meet_with = [](LocalConnector& point, const std::string& remote, ContextId mine, ContextId theirs,
                              std::size_t given, std::size_t expected) {
      std::vector<Fd> memories;
      LocalConnectRequest request{remote, mine, theirs, {}, later(), 5, expected};
      for (std::size_t index = 0; index < given; ++index) {
        memories.push_back(memory_of(index + 1));
        request.descriptors.push_back(memories.back().get());
      }
      return point.connect(request);
    };
    auto right = std::async(std::launch::async, [&, few = few, many = many] {
      return meet_with(*there.point, here.point->address(), 2, 1, few, many);
    });
    const auto left = meet_with(*here.point, there.point->address(), 1, 2, many, few);
    const auto theirs = right.get();
    for (const auto& [connection, count] : {std::pair{&left, few}, {&theirs, many}}) {
      ASSERT_TRUE(connection->ok()) << text_of(*connection);
      ASSERT_EQ(connection->value().descriptors.size(), count);
      for (std::size_t index = 0; index < count; ++index)
        EXPECT_EQ(context_of(connection->value().descriptors[index]), index + 1);
    }
  }
}

TEST(LocalConnector, AnotherNumberOfSegmentsIsRejected) {
  Plane here;
  Plane there;
  const Fd memory = memory_of(1);
  auto right = std::async(std::launch::async, [&] {
    return there.point->connect({here.point->address(), 2, 1, {memory.get(), memory.get()}, later()});
  });
  const auto left = here.point->connect({there.point->address(), 1, 2, {memory.get()}, later()});
  EXPECT_THAT(text_of(left), HasSubstr("its process sends 2 descriptors, but 1 are expected"));
  // The end that sends last has no connection either.
  const auto other = right.get();
  char byte = 0;
  if (other.ok()) {
    EXPECT_TRUE(wait_for(other.value().socket.get(), POLLIN, later()).ok());
    EXPECT_EQ(recv(other.value().socket.get(), &byte, 1, MSG_DONTWAIT), 0);
  }
}

TEST(LocalConnector, ManyContextsOfOneProcessAtOnce) {
  Plane plane;
  constexpr ContextId kContexts = 6;
  std::vector<std::thread> threads;
  std::atomic<int> met{0};
  for (ContextId mine = 1; mine <= kContexts; ++mine) {
    threads.emplace_back([&, mine] {
      for (ContextId theirs = 1; theirs <= kContexts; ++theirs) {
        if (theirs == mine) continue;
        const auto connection = meet(*plane.point, plane.point->address(), mine, theirs);
        ASSERT_TRUE(connection.ok()) << text_of(connection);
        EXPECT_EQ(context_of(connection.value().descriptors.at(0)), theirs);
        ++met;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, static_cast<int>(kContexts * (kContexts - 1)));
}

TEST(LocalConnector, ItselfGarbageAndDeadlines) {
  Plane here;
  Plane there;
  EXPECT_EQ(meet(*here.point, here.point->address(), 3, 3).status().code(), Code::invalid_argument);
  EXPECT_THAT(text_of(meet(*here.point, "garbage", 1, 2)), HasSubstr("address has 7 bytes"));
  EXPECT_THAT(text_of(meet(*here.point, std::string(here.point->address().size(), 'x'), 1, 2)), HasSubstr("is malformed"));
  for (LocalConnector* point : {here.point.get(), there.point.get()}) {
    const std::string& other = point == here.point.get() ? there.point->address() : here.point->address();
    const auto alone = meet(*point, other, 1, 2, Deadline::after_ms(60));
    EXPECT_EQ(alone.status().code(), Code::timeout);
    EXPECT_THAT(text_of(alone), HasSubstr("before the deadline of the init"));
  }
}

TEST(LocalConnector, AnEndedProcessIsNamedAtOnce) {
  Plane here;
  for (int round = 0; round < 6; ++round) {
    std::string address;
    {
      Plane gone;
      address = gone.point->address();
    }
    // Names are random, so this side sometimes connects and sometimes waits for a connection.
    constexpr std::uint64_t kLimitNs = 5'000'000'000;
    const auto measure = [&] {
      const std::uint64_t start = monotonic_ns();
      EXPECT_EQ(text_of(meet(*here.point, address, 1, 2)), "its process has ended");
      return monotonic_ns() - start;
    };
    EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, measure), kLimitNs);
  }
}

TEST(LocalConnector, AWrongTokenIsRejected) {
  Plane here;
  LogCapture log;
  const ProcessAddress real = decode_address(here.point->address()).value();
  auto connection = connect_local(real.socket_name, SocketKind::packets, later());
  ASSERT_TRUE(connection.ok());
  HandshakeMessage hello;
  hello.kind = HandshakeKind::hello;
  hello.of_receiver = random_token();
  ASSERT_TRUE(send_handshake(connection->get(), hello, {}, later()).ok());
  EXPECT_EQ(receive_handshake(connection->get(), HandshakeKind::accept, later()).status().code(), Code::remote_error);
  EXPECT_TRUE(log.contains("did not prove that it belongs to this job"));
}

TEST(LocalConnector, AnImpostorAtTheAddressIsRejected) {
  Plane here;
  const ProcessAddress impostor = impostors_address();
  auto listener = listen_local(impostor.socket_name, SocketKind::packets);
  ASSERT_TRUE(listener.ok());
  std::thread answering([&] {
    ASSERT_TRUE(wait_for(listener->get(), POLLIN, later()).ok());
    const Fd socket(accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const auto hello = receive_handshake(socket.get(), HandshakeKind::hello, later());
    ASSERT_TRUE(hello.ok());
    EXPECT_TRUE(hello.value().descriptors.empty()) << "no memory before the proof";
    HandshakeMessage welcome;
    welcome.kind = HandshakeKind::accept;
    welcome.of_receiver = random_token();
    EXPECT_TRUE(send_handshake(socket.get(), welcome, {}, later()).ok());
    EXPECT_EQ(receive_handshake(socket.get(), HandshakeKind::descriptors, later()).status().code(), Code::remote_error);
  });
  EXPECT_THAT(text_of(meet(*here.point, encode(impostor), 1, 2)), HasSubstr("could not prove"));
  answering.join();
}

// Declines the attempt after that time. Returns when a context that waits and one that comes late have heard the reason.
std::uint64_t heard_after_ns(Plane& here, Plane& there, AttemptId attempt, int wait_ms) {
  const Fd memory = memory_of(1);
  auto waiting = std::async(std::launch::async, [&] {
    return here.point->connect({there.point->address(), 1, 2, {memory.get()}, later(), attempt});
  });
  poll(nullptr, 0, wait_ms);
  const std::uint64_t declined = monotonic_ns();
  there.point->decline(attempt, 2,
                       failure(Code::unavailable, "rank 3 could not connect: \x01 %s", std::string(500, 'x').c_str()));
  const Result<LocalConnection> heard = waiting.get();
  EXPECT_EQ(heard.status().code(), Code::aborted) << text_of(heard);
  EXPECT_THAT(text_of(heard), HasSubstr("rank 3 could not connect: ? xxx"));
  EXPECT_LT(text_of(heard).size(), kRefusalSize);
  const Result<LocalConnection> late = here.point->connect({there.point->address(), 1, 2, {memory.get()}, later(), attempt});
  EXPECT_EQ(late.status().code(), Code::aborted) << text_of(late);
  return monotonic_ns() - declined;
}

// Both sides of a pair, whichever connects, before and after the other side declined.
TEST(LocalConnector, ADeclinedAttemptIsReportedToWaitingAndLateContexts) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  AttemptId attempt = 7;
  for (int round = 0; round < 6; ++round) {  // names are random, so either side may connect
    Plane here;
    Plane there;
    const auto measure = [&] { return heard_after_ns(here, there, attempt++, round % 2 * 60); };
    EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, measure), kLimitNs);
  }
}

// All ranks of a large communicator may be contexts of one process, and others retry in the meantime.
TEST(LocalConnector, ADeclinedAttemptIsKeptAmongManyOthers) {
  Plane here;
  Plane there;
  const Fd memory = memory_of(1);
  there.point->decline(7, 2, failure(Code::unavailable, "rank 3 could not connect"));
  for (ContextId context = 3; context < 2003; ++context) {
    there.point->decline(8 + context % 50, context, failure(Code::unavailable, "another"));
    there.point->decline(7, context, failure(Code::unavailable, "another"));
    there.point->decline(7, context, failure(Code::unavailable, "again"));  // uses no further entry
  }
  const Result<LocalConnection> late = here.point->connect({there.point->address(), 1, 2, {memory.get()}, later(), 7});
  EXPECT_EQ(late.status().code(), Code::aborted) << text_of(late);
  EXPECT_THAT(text_of(late), HasSubstr("rank 3 could not connect"));
}

TEST(LocalConnector, DecliningConcernsOneAttemptOfOneContext) {
  Plane here;
  Plane there;
  there.point->decline(7, 2, failure(Code::unavailable, "no"));
  const Fd mine = memory_of(1);
  const Fd theirs = memory_of(2);
  auto right = std::async(std::launch::async, [&] {
    return there.point->connect({here.point->address(), 2, 1, {theirs.get()}, later(), 8});
  });
  const auto left = here.point->connect({there.point->address(), 1, 2, {mine.get()}, later(), 8});
  expect_joined(left, right.get(), 1, 2);
}

TEST(LocalConnector, ARejectionWithoutAProofIsIgnored) {
  Plane here;
  const ProcessAddress impostor = impostors_address();
  auto listener = listen_local(impostor.socket_name, SocketKind::packets);
  ASSERT_TRUE(listener.ok());
  std::thread answering([&] {
    ASSERT_TRUE(wait_for(listener->get(), POLLIN, later()).ok());
    const Fd socket(accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    ASSERT_TRUE(receive_handshake(socket.get(), HandshakeKind::hello, later()).ok());
    HandshakeMessage refusal;
    refusal.kind = HandshakeKind::refusal;
    refusal.of_receiver = random_token();
    put_text(refusal, failure(Code::aborted, "rank 5 is to blame"));
    EXPECT_TRUE(send_handshake(socket.get(), refusal, {}, later()).ok());
  });
  const std::string heard = text_of(meet(*here.point, encode(impostor), 1, 2));
  EXPECT_THAT(heard, HasSubstr("could not prove"));
  answering.join();
}

TEST(LocalConnector, SilentConnectionsAreClosedAndDoNotPreventOthers) {
  Plane here;
  Plane there;
  const ProcessAddress address = decode_address(here.point->address()).value();
  std::vector<PrivateFd> unauthenticated;
  for (std::size_t index = 0; index < kUnauthenticatedLimit + 8; ++index) {
    auto connection = connect_local(address.socket_name, SocketKind::packets, later());
    ASSERT_TRUE(connection.ok());
    unauthenticated.push_back(std::move(connection).value());
  }
  auto right = std::async(std::launch::async, [&] { return meet(*there.point, here.point->address(), 2, 1); });
  const auto left = meet(*here.point, there.point->address(), 1, 2);
  expect_joined(left, right.get(), 1, 2);
  ASSERT_TRUE(wait_for(unauthenticated[0].get(), POLLIN, Deadline::after_ms(kUnauthenticatedMs + 20'000)).ok());
}

// A child's control plane must be made in the child, so the addresses go over a socket pair.
struct ControlChannel {
  ControlChannel() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) std::abort();
    parent = Fd(ends[0]);
    child = Fd(ends[1]);
  }
  static std::string swap(const Fd& end, const std::string& mine) {
    char bytes[256];
    if (send(end.get(), mine.data(), mine.size(), 0) < 0) return {};
    const ssize_t got = recv(end.get(), bytes, sizeof bytes, 0);
    return {bytes, static_cast<std::size_t>(got < 0 ? 0 : got)};
  }
  Fd parent;
  Fd child;
};

// The time until the end of a killed process is detected, whose child lives.
std::uint64_t death_noticed_after_ns() {
  ControlChannel channel;
  int bystander[2];
  EXPECT_EQ(pipe(bystander), 0);
  ChildProcess peer([&] {
    Plane there;
    const std::string remote = ControlChannel::swap(channel.child, there.point->address());
    const auto connection = meet(*there.point, remote, 2, 1);
    if (!connection.ok()) return false;
    const pid_t loader = fork();  // as a data loader would: it holds copies of all ordinary descriptors
    if (loader == 0) {
      char byte = 0;
      close(bystander[1]);
      _exit(read(bystander[0], &byte, 1) == 0 ? 0 : 1);  // until the parent of the test closes its end
    }
    static_cast<void>(send(channel.child.get(), "met", 3, 0));
    pause();
    return false;
  });
  Plane here;
  const std::string remote = ControlChannel::swap(channel.parent, here.point->address());
  const auto connection = meet(*here.point, remote, 1, 2);
  char word[8];
  if (!connection.ok() || recv(channel.parent.get(), word, sizeof word, 0) != 3)
    return ADD_FAILURE() << text_of(connection), ~std::uint64_t{0};
  std::promise<std::uint64_t> hung_up;
  auto watch = here.control->watch(connection.value().socket.get(), [&] { hung_up.set_value(monotonic_ns()); });
  const std::uint64_t killed = monotonic_ns();
  kill(peer.pid(), SIGKILL);
  auto noticed = hung_up.get_future();
  EXPECT_EQ(noticed.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  watch->remove();
  close(bystander[0]);
  close(bystander[1]);
  return ::testing::Test::HasFailure() ? ~std::uint64_t{0} : noticed.get() - killed;
}

TEST(LocalConnector, AKilledProcessIsDetectedAlthoughItsChildLives) {
  constexpr std::uint64_t kLimitNs = 1'000'000'000;
  EXPECT_LT(testing::least_of(testing::kMostTries, kLimitNs, death_noticed_after_ns), kLimitNs);
}

TEST(LocalConnector, FourRanksConnectWithALimitOf64Descriptors) {
  ChildProcess child([] {
    const rlimit few{64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    // The hardest case: four ranks as threads of one process, so that both ends of every connection are here.
    Plane plane;
    std::vector<std::thread> threads;
    std::atomic<int> met{0};
    for (ContextId mine = 1; mine <= 4; ++mine) {
      threads.emplace_back([&, mine] {
        std::vector<LocalConnection> held;
        for (ContextId theirs = 1; theirs <= 4; ++theirs) {
          if (theirs == mine) continue;
          auto connection = meet(*plane.point, plane.point->address(), mine, theirs);
          EXPECT_TRUE(connection.ok()) << text_of(connection);
          if (connection.ok()) held.push_back(std::move(connection).value());
        }
        met += static_cast<int>(held.size());
      });
    }
    for (std::thread& thread : threads) thread.join();
    return met == 12;
  });
  EXPECT_TRUE(child.wait());
}

TEST(LocalConnector, OutOfDescriptorsIsReportedOnBothSidesAndNeverHangs) {
  ControlChannel channel;
  ChildProcess peer([&] {
    Plane there;
    const std::string remote = ControlChannel::swap(channel.child, there.point->address());
    std::vector<Fd> hoard;
    const rlimit few{40, 40};
    setrlimit(RLIMIT_NOFILE, &few);
    // Only the descriptors that the listener reserves for this case are left.
    for (Fd fd(dup(0)); fd.valid(); fd = Fd(dup(0))) hoard.push_back(std::move(fd));
    static_cast<void>(send(channel.child.get(), "full", 4, 0));
    const auto connection = there.point->connect({remote, 2, 1, {0}, Deadline::after_ms(20'000)});
    EXPECT_EQ(connection.status().code(), Code::unavailable) << text_of(connection);
    EXPECT_THAT(text_of(connection), HasSubstr("raise ulimit -n"));
    return true;
  });
  Plane here;
  const std::string remote = ControlChannel::swap(channel.parent, here.point->address());
  char word[8];
  ASSERT_EQ(recv(channel.parent.get(), word, sizeof word, 0), 4);
  const auto connection = meet(*here.point, remote, 1, 2, Deadline::after_ms(20'000));
  EXPECT_FALSE(connection.ok());
  EXPECT_NE(connection.status().code(), Code::timeout) << text_of(connection);
  EXPECT_TRUE(peer.wait());
}

}  // namespace
}  // namespace seto
