#include "src/net/tcp_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "src/net/local_socket.h"
#include "src/net/traffic_class.h"
#include "tests/support/child_process.h"
#include "tests/support/free_port.h"

namespace seto {
namespace {

using testing::ChildProcess;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after_ms(10'000); }

SocketAddress here(AddressFamily family) { return parse_host(family == AddressFamily::ipv4 ? "127.0.0.1" : "::1").value(); }

bool has_ipv6() { return listen_tcp({here(AddressFamily::ipv6)}, {}, 1).ok(); }

int option(const PrivateFd& fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd.get(), level, name, &value, &size), 0);
  return value;
}

void expect_carries_bytes(const PrivateFd& listener, const SocketAddress& address) {
  auto caller = connect_tcp(address, soon());
  ASSERT_TRUE(caller.ok()) << caller.status().text();
  ASSERT_TRUE(wait_for(listener.get(), POLLIN, soon()).ok());
  const PrivateFd answerer = accept_tcp(listener);
  ASSERT_TRUE(answerer.valid());
  EXPECT_EQ(remote_address(caller->get()).value(), address);
  EXPECT_EQ(remote_address(answerer.get()).value(), local_address(caller->get()).value());
  const PrivateFd& called = *caller;
  for (const PrivateFd* fd : {&called, &answerer}) {
    EXPECT_NE(option(*fd, IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_NE(option(*fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_EQ(option(*fd, IPPROTO_TCP, TCP_USER_TIMEOUT), static_cast<int>(kUserTimeoutMs));
  }
  ASSERT_EQ(send(caller->get(), "x", 1, MSG_NOSIGNAL), 1);
  ASSERT_TRUE(wait_for(answerer.get(), POLLIN, soon()).ok());
  char byte = 0;
  EXPECT_EQ(recv(answerer.get(), &byte, 1, 0), 1);
  EXPECT_EQ(recv(answerer.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(TcpSocket, ConnectsOverBothFamiliesOnOnePort) {
  std::vector<SocketAddress> addresses = {here(AddressFamily::ipv4)};
  if (has_ipv6()) addresses.push_back(here(AddressFamily::ipv6));
  auto listener = listen_tcp(addresses, {}, 16);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  ASSERT_EQ(listener->sockets.size(), addresses.size());
  for (std::size_t index = 0; index < addresses.size(); ++index) {
    EXPECT_EQ(listener->addresses[index].port, listener->addresses[0].port);
    expect_carries_bytes(listener->sockets[index], listener->addresses[index]);
  }
}

// ---- marks ----

// The marks of the process, for one test.
struct Marks {
  explicit Marks(const TrafficMarks& marks) { set_traffic_marks(marks); }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
  ~Marks() { set_traffic_marks({}); }
};

// A connection from the family of an address to a listener of one or both families.
struct Pair {
  Pair(const SocketAddress& listen_at, AddressFamily family) {
    listener = listen_tcp({listen_at}, {}, 16).value();
    caller = connect_tcp(here(family).with_port(listener.addresses[0].port), soon()).value();
    EXPECT_TRUE(wait_for(listener.sockets[0].get(), POLLIN, soon()).ok());
    answerer = accept_tcp(listener.sockets[0]);
  }
  TcpListener listener;
  PrivateFd caller, answerer;
};

// The mark of packets that a socket sends to an address of that family; the kernel owns the lowest two bits.
int mark_of(const PrivateFd& fd, AddressFamily family) {
  const bool four = family == AddressFamily::ipv4;
  return option(fd, four ? IPPROTO_IP : IPPROTO_IPV6, four ? IP_TOS : IPV6_TCLASS) >> 2;
}

TEST(TrafficMarks, BothEndsOfAConnectionHaveThatOfTheirClass) {
  const Marks marks({46, 10});
  std::vector<AddressFamily> families = {AddressFamily::ipv4};
  if (has_ipv6()) families.push_back(AddressFamily::ipv6);
  for (const AddressFamily family : families) {
    std::vector<SocketAddress> listen_at = {here(family)};
    if (has_ipv6()) listen_at.push_back(any_address(AddressFamily::ipv6));
    for (const SocketAddress& address : listen_at) {
      const Pair pair(address, family);
      EXPECT_EQ(mark_of(pair.listener.sockets[0], address.family), 46) << "of its answers";
      for (const PrivateFd* fd : {&pair.caller, &pair.answerer}) {
        EXPECT_EQ(mark_of(*fd, family), 46) << to_text(address);
        mark_traffic(fd->get(), TrafficClass::data);
        EXPECT_EQ(mark_of(*fd, family), 10) << to_text(address);
      }
    }
  }
}

TEST(TrafficMarks, AClassWithoutAMarkHasNone) {
  const Marks marks({46, kAutomatic});
  const Pair pair(here(AddressFamily::ipv4), AddressFamily::ipv4);
  EXPECT_EQ(mark_of(pair.caller, AddressFamily::ipv4), 46);
  mark_traffic(pair.caller.get(), TrafficClass::data);
  EXPECT_EQ(mark_of(pair.caller, AddressFamily::ipv4), 0);
}

TEST(TrafficMarks, WithoutMarksASocketKeepsWhatItHas) {
  const Pair pair(here(AddressFamily::ipv4), AddressFamily::ipv4);
  const int given = 8 << 2;
  ASSERT_EQ(setsockopt(pair.caller.get(), IPPROTO_IP, IP_TOS, &given, sizeof given), 0);
  mark_traffic(pair.caller.get(), TrafficClass::data);
  EXPECT_EQ(mark_of(pair.caller, AddressFamily::ipv4), 8);
}

TEST(TcpSocket, TheAnyAddressAcceptsBothFamilies) {
  if (!has_ipv6()) GTEST_SKIP() << "skipped: needs IPv6";
  auto listener = listen_tcp({any_address(AddressFamily::ipv6)}, {}, 16);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  const std::uint16_t port = listener->addresses[0].port;
  expect_carries_bytes(listener->sockets[0], here(AddressFamily::ipv4).with_port(port));
  expect_carries_bytes(listener->sockets[0], here(AddressFamily::ipv6).with_port(port));
}

TEST(TcpSocket, FailsIfNoProcessListens) {
  const auto refused = connect_tcp(here(AddressFamily::ipv4).with_port(testing::free_port()), soon());
  EXPECT_EQ(refused.status().code(), Code::remote_error);
  EXPECT_THAT(std::string(refused.status().text()), HasSubstr("no process listens at 127.0.0.1:"));
}

TEST(TcpSocket, NoAnswerEndsAtDeadline) {
  auto listener = listen_tcp({here(AddressFamily::ipv4)}, {}, 0);
  ASSERT_TRUE(listener.ok());
  std::vector<PrivateFd> waiting;
  Code end = Code::ok;
  for (int index = 0; index < 10 && end == Code::ok; ++index) {
    auto fd = connect_tcp(listener->addresses[0], Deadline::after_ms(50));
    end = fd.status().code();
    if (fd.ok()) waiting.push_back(std::move(fd).value());
    if (end != Code::ok) {
      EXPECT_THAT(std::string(fd.status().text()), HasSubstr("does not answer"));
    }
  }
  EXPECT_EQ(end, Code::timeout);
}

TEST(TcpSocket, ATakenPortIsSkippedAndAnExhaustedRangeIsNamed) {
  const std::vector<SocketAddress> addresses = {here(AddressFamily::ipv4)};
  // A port whose successor is free too, so that the test can use the range.
  for (int attempt = 0; attempt < 50; ++attempt) {
    auto first = listen_tcp(addresses, {}, 1);
    ASSERT_TRUE(first.ok());
    const std::uint16_t port = first->addresses[0].port;
    if (port == 65'535) continue;
    const PortRange range{port, static_cast<std::uint16_t>(port + 1)};
    auto second = listen_tcp(addresses, range, 1);
    if (!second.ok()) continue;
    EXPECT_EQ(second->addresses[0].port, range.last);
    auto third = listen_tcp(addresses, range, 1);
    EXPECT_EQ(third.status().code(), Code::unavailable);
    const std::string text = "every port from " + std::to_string(range.first) + " to " + std::to_string(range.last) + " is taken";
    EXPECT_THAT(std::string(third.status().text()), HasSubstr(text));
    EXPECT_THAT(std::string(listen_tcp(addresses, {port, port}, 1).status().text()), HasSubstr("is taken: another process"));
    return;
  }
  FAIL() << "no two ports in a row were free";
}

TEST(TcpSocket, PortsAreParsed) {
  EXPECT_EQ(parse_ports("").value().first, 0);
  EXPECT_EQ(parse_ports("80").value().last, 80);
  EXPECT_EQ(parse_ports("20000-20099").value().last, 20'099);
  for (const char* text : {"0", "0-5", "9-8", "1-65536", "a-b", "1-", "-1", "1-2-3"})
    EXPECT_FALSE(parse_ports(text).ok()) << text;
}

TEST(TcpSocket, AnAddressOfAnotherMachineIsRejected) {
  const SocketAddress foreign = parse_host("198.51.100.7").value();
  EXPECT_THAT(std::string(listen_tcp({foreign}, {}, 1).status().text()), HasSubstr("cannot listen at 198.51.100.7:0"));
  auto with_ours = listen_tcp({foreign, here(AddressFamily::ipv4)}, {}, 1);
  ASSERT_TRUE(with_ours.ok()) << with_ours.status().text();
  EXPECT_EQ(with_ours->addresses.size(), 1U);
}

TEST(TcpSocket, OutOfDescriptorsNamesTheRemedy) {
  ChildProcess child([] {
    const SocketAddress address = here(AddressFamily::ipv4);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
    auto listener = listen_tcp({address}, {}, 1);
    const auto caller = connect_tcp(address.with_port(1), soon());
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_THAT(std::string(listener.status().text()), HasSubstr("its limit is 3); raise ulimit -n"));
    EXPECT_THAT(std::string(caller.status().text()), HasSubstr("its limit is 3); raise ulimit -n"));
    return true;
  });
  EXPECT_TRUE(child.wait());
}

}  // namespace
}  // namespace seto
