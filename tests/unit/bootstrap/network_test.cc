// The rendezvous over TCP must have the same properties as on one machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/net/local_socket.h"
#include "src/net/tcp_socket.h"
#include "tests/support/child_process.h"
#include "tests/support/free_port.h"
#include "tests/support/tries.h"
#include "tests/unit/bootstrap/place.h"

namespace seto {
namespace {

using testing::Answer;
using testing::as_threads;
using testing::ChildProcess;
using testing::FarPlace;
using testing::free_port;
using ::testing::HasSubstr;
using testing::join_and_gather;
using testing::later;
using testing::loopback_network;
using testing::text_of;

constexpr auto kCommunicator = UniqueId::Serves::communicator;

TEST(NetworkRendezvous, RanksJoinByTcpAndByTheLocalSocket) {
  FarPlace place;
  const auto answers =
      as_threads(4, [&](Rank rank) { return join_and_gather(rank % 2 == 0 ? place.bytes : place.far, rank, 4, later()); });
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_EQ(answer.value()[3], "rank 3");
  }
  EXPECT_TRUE(testing::ends_within(*place.server, testing::kLongMs));
}

TEST(NetworkRendezvous, AllAgreeOnASecretThatIsNotTheToken) {
  FarPlace place;
  std::vector<Secret> secrets(3);
  const auto answers = as_threads(3, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(place.far, rank, 3, later(), loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    secrets[static_cast<std::size_t>(rank)] = *bootstrap->secret();
    return bootstrap->all_gather("", later());
  });
  for (const Answer& answer : answers) ASSERT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_TRUE(equal(secrets[0], secrets[1]) && equal(secrets[1], secrets[2]));
  EXPECT_FALSE(equal(secrets[0], rendezvous_key(place.id.token)));
}

TEST(NetworkRendezvous, DeadlineNamesTheMissing) {
  EXPECT_EQ(testing::with_growing_time([](std::uint64_t ms) {
              FarPlace place;
              const std::uint64_t longer_ms = std::min(testing::kLongMs, 10 * ms);
              const auto answers = as_threads(2, [&](Rank rank) {
                return join_and_gather(place.far, rank, 4, Deadline::after_ms(rank == 0 ? ms : longer_ms));
              });
              std::string problem;
              for (const Answer& answer : answers) problem += testing::lacks(text_of(answer), "ranks 2 and 3 of 4 did not join");
              if (!problem.empty()) return problem;
              for (const Answer& answer : answers) EXPECT_EQ(answer.status().code(), Code::timeout);
              return problem;
            }),
            "");
}

TEST(NetworkRendezvous, WrongRankAndSizeAreNamedOnEveryRank) {
  const auto expect = [](Rank rank, int size, const auto& text) {
    FarPlace place;
    const auto answers = as_threads(
        2, [&](Rank index) { return join_and_gather(place.far, index == 0 ? 0 : rank, index == 0 ? 3 : size, later()); });
    for (const Answer& answer : answers) EXPECT_THAT(text_of(answer), text);
  };
  expect(0, 3, HasSubstr("rank 0 joined twice"));
  expect(5, 3, HasSubstr("rank 5 is out of range: the communicator has 3 ranks"));
  // The rank that joins second is the one that is rejected.
  expect(1, 4,
         ::testing::AnyOf(HasSubstr("rank 1 says that the communicator has 4 ranks, rank 0 says 3"),
                          HasSubstr("rank 0 says that the communicator has 3 ranks, rank 1 says 4")));
}

TEST(NetworkRendezvous, KilledRankIsNamedWithoutADeadline) {
  FarPlace place;
  ChildProcess victim([&] {
    auto bootstrap = RendezvousBootstrap::join(place.far, 2, 3, later(), loopback_network());
    if (!bootstrap.ok() || !bootstrap->all_gather("alive", later()).ok()) return false;
    pause();
    return false;
  });
  const auto answers = as_threads(2, [&](Rank rank) -> Answer {
    auto bootstrap = RendezvousBootstrap::join(place.far, rank, 3, later(), loopback_network());
    if (!bootstrap.ok()) return bootstrap.status();
    if (auto first = bootstrap->all_gather("x", later()); !first.ok()) return failure(Code::internal, "first round");
    if (rank == 0) victim.kill_now();
    return bootstrap->all_gather("y", Deadline::never());
  });
  for (const Answer& answer : answers) EXPECT_THAT(text_of(answer), HasSubstr("rank 2 has left the rendezvous"));
}

TEST(NetworkRendezvous, AnotherTokenIsRejected) {
  FarPlace place;
  LogCapture log;
  UniqueId forged = decode(place.far).value();
  forged.token = random_token();
  EXPECT_THAT(text_of(join_and_gather(encode(forged), 0, 2, later())), HasSubstr("has no job with this secret"));
  EXPECT_TRUE(testing::comes_to_say(log, "closed a connection from 127.0.0.1 that did not prove"));
  const auto answers = as_threads(2, [&](Rank rank) { return join_and_gather(place.far, rank, 2, later()); });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
}

// A unique id lists the addresses of a machine. From here some may be unreachable, or belong to other processes.
TEST(NetworkRendezvous, UnreachableAndForeignAddressesAreTriedAndListed) {
  FarPlace place;
  auto foreign = listen_tcp({parse_host("127.0.0.9").value()}, {place.address().port, place.address().port}, 16);
  ASSERT_TRUE(foreign.ok()) << foreign.status().text();
  UniqueId id = decode(place.far).value();
  const SocketAddress dead = parse_host("127.0.0.8")->with_port(place.address().port);
  id.address.addresses = {dead, foreign->addresses[0], place.address()};
  const auto answers = as_threads(2, [&](Rank rank) { return join_and_gather(encode(id), rank, 2, later()); });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  place.server.reset();
  id.address.addresses = {dead, place.address()};
  const Answer answer = join_and_gather(encode(id), 0, 2, later());
  EXPECT_THAT(text_of(answer), HasSubstr("rank 0: no process answers for this unique id"));
  EXPECT_THAT(text_of(answer), HasSubstr("(no process listens at " + to_text(dead) + "; no process listens at 127.0.0.1:"));
}

TEST(NetworkRendezvous, AnInitThatTriesForLongSaysWhy) {
  const std::string port = std::to_string(free_port());
  const LogCapture log;
  RendezvousBootstrap::Request request;
  request.server.addresses = {parse_host("127.0.0.1")->with_port(static_cast<std::uint16_t>(std::stoi(port)))};
  request.rank = 1;
  request.size = 2;
  request.goal = "rank 0 at SETO_ROOT=127.0.0.1:" + port;
  request.tell_after_ms = 1'000;
  const auto again = [](RendezvousBootstrap::Request&, RendezvousBootstrap::ConnectFailure) { return true; };
  EXPECT_FALSE(RendezvousBootstrap::join(request, Deadline::after_ms(600), again).ok());
  EXPECT_FALSE(log.contains("has tried for")) << "too early";
  EXPECT_FALSE(RendezvousBootstrap::join(request, Deadline::after_ms(2'500), again).ok());
  const std::vector<std::string> lines = log.lines();
  const auto tells = [](const std::string& line) { return line.find("has tried for") != std::string::npos; };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), tells), 1) << "once";
  EXPECT_TRUE(log.contains("rank 1 has tried for 1 s to reach rank 0 at SETO_ROOT=127.0.0.1:" + port +
                           " (no process listens at 127.0.0.1:" + port +
                           "); check that rank 0 was started, and that its site lets this port in"));
}

TEST(NetworkRendezvous, Ipv6Only) {
  auto probe = listen_tcp({parse_host("::1").value()}, {}, 1);
  if (!probe.ok()) GTEST_SKIP() << "skipped: needs IPv6";
  const UniqueId base{kCommunicator, random_token(), {}};
  auto listeners = Listeners::open(NetworkChoice::parse({"::1", ""}).value(), Listeners::Reach::network);
  ASSERT_TRUE(listeners.ok()) << listeners.status().text();
  UniqueId id = base;
  id.address.addresses = listeners->address().addresses;
  ASSERT_EQ(host_text(id.address.addresses.front()), "::1");
  const auto server = RendezvousServer::start(std::move(listeners).value(), {rendezvous_key(id.token), kCommunicator, later()});
  ASSERT_TRUE(server.ok());
  const auto answers = as_threads(3, [&](Rank rank) { return join_and_gather(encode(id), rank, 3, later()); });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
}

// A process of another version of the library, which has the key.
TEST(NetworkRendezvous, AnotherVersionIsRejectedAndBothAreNamed) {
  FarPlace place;
  LogCapture log;
  auto fd = connect_tcp(place.address(), later());
  ASSERT_TRUE(fd.ok()) << fd.status().text();
  CallerHandshake old(rendezvous_key(place.id.token), Claim{}, {kAuthProtocol, "0.0.7"});
  Status heard;
  while (!old.over() && heard.ok()) {
    const std::string out = old.take_out();
    ASSERT_EQ(send(fd->get(), out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
    ASSERT_TRUE(wait_for(fd->get(), POLLIN, later()).ok());
    char bytes[512];
    const ssize_t got = recv(fd->get(), bytes, old.wanted(), 0);
    ASSERT_GT(got, 0);
    heard = old.feed({bytes, static_cast<std::size_t>(got)});
  }
  const std::string version(library_version());
  EXPECT_THAT(std::string(heard.text()),
              HasSubstr("the library there is version " + version + ", the one here is version 0.0.7"));
  const auto answers = as_threads(2, [&](Rank rank) { return join_and_gather(place.far, rank, 2, later()); });
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_TRUE(testing::comes_to_say(log, "the library there is version 0.0.7, the one here is version " + version));
}

// Each connection sends something wrong, or nothing, and many stay until they are closed.
TEST(NetworkRendezvous, TenThousandUnauthenticatedConnectionsDelayNoRank) {
  FarPlace place(UniqueId::Serves::job);
  LogCapture log;
  std::atomic<int> opened{0};
  std::atomic<bool> joined{false};
  std::thread pending([&] {
    std::vector<PrivateFd> held;
    const std::string words[] = {"", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", std::string(4'000, '\xff'),
                                 std::string(24, '\0')};
    while (opened < 10'000 || !joined) {
      auto fd = connect_tcp(place.address(), later());
      if (!fd.ok()) break;
      const std::string& word = words[opened % 4];
      static_cast<void>(send(fd->get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
      held.push_back(std::move(fd).value());
      if (held.size() > 100) held.clear();
      ++opened;
    }
  });
  for (const Deadline until = later(); opened < 200 && !until.passed();) std::this_thread::yield();
  constexpr int kRanks = 12;
  const auto answers = as_threads(kRanks, [&](Rank rank) { return join_and_gather(place.far, rank, kRanks, later()); });
  joined = true;
  pending.join();
  for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_GE(opened, 10'000);
  EXPECT_LE(log.lines().size(), 10U) << "one line for an address in a minute";
}

// The server's process has few descriptors, and unauthenticated connections try to use them all.
TEST(NetworkRendezvous, UnauthenticatedConnectionsDoNotUseUpDescriptors) {
  int ports[2];
  int go[2];
  ASSERT_EQ(pipe(ports) | pipe(go), 0);
  ChildProcess child([&] {
    const rlimit few{60, 60};
    setrlimit(RLIMIT_NOFILE, &few);
    const FarPlace place;
    const std::uint16_t port = place.address().port;
    char byte = 0;
    if (write(ports[1], &port, sizeof port) != sizeof port || read(go[0], &byte, 1) != 1) return false;
    const auto answers = as_threads(8, [&](Rank rank) { return join_and_gather(place.far, rank, 8, later()); });
    for (const Answer& answer : answers) EXPECT_TRUE(answer.ok()) << answer.status().text();
    return true;
  });
  std::uint16_t port = 0;
  ASSERT_EQ(read(ports[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  std::vector<PrivateFd> unauthenticated;
  for (int count = 0; count < 150; ++count) {
    auto fd = connect_tcp(parse_host("127.0.0.1")->with_port(port), later());
    if (fd.ok()) unauthenticated.push_back(std::move(fd).value());
  }
  ASSERT_EQ(write(go[1], "g", 1), 1);
  EXPECT_TRUE(child.wait());
  for (const int end : {ports[0], ports[1], go[0], go[1]}) close(end);
}

}  // namespace
}  // namespace seto
