#include "src/net/peer_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "src/base/fd.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

bool has_ipv6_loopback() {
  const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

TEST(PeerListener, ListensOnTheInterfacesThatTheFilterAllows) {
  for (const char* filter : {"", "lo", "127.0.0.0/8"}) {
    auto network = NetworkChoice::parse({filter, ""});
    ASSERT_TRUE(network.ok());
    auto peers = listen_for_peers(*network, 16);
    ASSERT_TRUE(peers.ok()) << peers.status().text();
    ASSERT_FALSE(peers->reachable.empty());
    for (const SocketAddress& address : peers->reachable) {
      auto caller = connect_tcp(address, Deadline::after_ms(10'000));
      EXPECT_TRUE(caller.ok()) << caller.status().text();
    }
  }
}

TEST(PeerListener, AFilterExcludesOtherInterfaces) {
  auto network = NetworkChoice::parse({"127.0.0.1", ""});
  ASSERT_TRUE(network.ok());
  auto peers = listen_for_peers(*network, 16);
  ASSERT_TRUE(peers.ok()) << peers.status().text();
  const SocketAddress other = parse_host("127.0.0.2")->with_port(peers->reachable[0].port);
  EXPECT_THAT(std::string(connect_tcp(other, Deadline::after_ms(10'000)).status().text()),
              HasSubstr("no process listens at 127.0.0.2"));
}

TEST(PeerListener, AdvertisedAddressesComeFirst) {
  const auto network = NetworkChoice::parse({.interfaces = "127.0.0.1", .ports = "", .advertised = "203.0.113.7,2001:db8::7"});
  ASSERT_TRUE(network.ok()) << network.status().text();
  auto peers = listen_for_peers(network.value(), 16);
  ASSERT_TRUE(peers.ok()) << peers.status().text();
  const std::uint16_t port = peers->listener.addresses.front().port;
  ASSERT_EQ(peers->reachable.size(), 3U);
  EXPECT_EQ(peers->reachable[0], parse_host("203.0.113.7")->with_port(port));
  EXPECT_EQ(peers->reachable[1], parse_host("2001:db8::7")->with_port(port));
  EXPECT_EQ(peers->reachable[2], parse_host("127.0.0.1")->with_port(port));
}

TEST(PeerListener, AddressesThatNobodyReachesAreNotAdvertised) {
  for (const char* text :
       {"0.0.0.0", "::", "fe80::1", "gateway", "10.0.0.1:80", "10.0.0.1,,10.0.0.2", "1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5"})
    EXPECT_THAT(std::string(NetworkChoice::parse({.interfaces = "", .ports = "", .advertised = text}).status().text()),
                HasSubstr("SETO_ADVERTISE"))
        << text;
}

// An address that alone lies on a path stays where it is, too.
TEST(PeerListener, AddressesOfPathsComeInTheirOrderAndOthersStay) {
  const auto hosts_with = [](const char* paths) {
    const auto network =
        NetworkChoice::parse({.interfaces = "127.0.0.0/8,::1", .ports = "", .advertised = "203.0.113.7", .paths = paths});
    auto peers = listen_for_peers(network.value(), 16);
    EXPECT_TRUE(peers.ok()) << peers.status().text();
    std::vector<std::pair<std::string, int>> hosts;
    for (std::size_t index = 0; peers.ok() && index < peers->reachable.size(); ++index)
      hosts.emplace_back(host_text(peers->reachable[index]), peers->paths[index]);
    return hosts;
  };
  if (!has_ipv6_loopback()) GTEST_SKIP() << "skipped: needs IPv6 on the loopback interface";
  const auto plain = hosts_with("");
  ASSERT_EQ(plain.size(), 3U);
  using ::testing::ElementsAre;
  using ::testing::Pair;
  EXPECT_THAT(hosts_with("::1,127.0.0.1"), ElementsAre(Pair("203.0.113.7", 0), Pair("::1", 1), Pair("127.0.0.1", 2)));
  EXPECT_THAT(hosts_with("127.0.0.1,::1"), ElementsAre(Pair("203.0.113.7", 0), Pair("127.0.0.1", 1), Pair("::1", 2)));
  for (const std::string one : {"::1", "127.0.0.1"}) {
    const auto hosts = hosts_with(one.c_str());
    ASSERT_EQ(hosts.size(), plain.size());
    for (std::size_t index = 0; index < hosts.size(); ++index)
      EXPECT_THAT(hosts[index], Pair(plain[index].first, hosts[index].first == one ? 1 : 0));
  }
}

TEST(PeerListener, PathsWithoutAnAddressAreRefused) {
  const auto network = NetworkChoice::parse({.interfaces = "lo", .ports = "", .paths = "lo,backup0"});
  ASSERT_TRUE(network.ok()) << network.status().text();
  EXPECT_THAT(std::string(listen_for_peers(network.value(), 16).status().text()),
              HasSubstr("SETO_PATHS: 'backup0' has no address that this process listens at; this host has lo"));
  for (const char* text : {"^lo", "lo,,lo", "10.0.0.0/99", "a,b,c,d,e"})
    EXPECT_THAT(std::string(NetworkChoice::parse({.interfaces = "", .ports = "", .paths = text}).status().text()),
                HasSubstr("SETO_PATHS"))
        << text;
}

TEST(PeerListener, InvalidTextsAreRejected) {
  EXPECT_FALSE(NetworkChoice::parse({"10.0.0.0/99", ""}).ok());
  EXPECT_FALSE(NetworkChoice::parse({"", "9-8"}).ok());
  auto network = NetworkChoice::parse({"no-such-interface", ""});
  ASSERT_TRUE(network.ok());
  EXPECT_THAT(std::string(listen_for_peers(*network, 1).status().text()),
              HasSubstr("SETO_INTERFACE=no-such-interface leaves no"));
}

}  // namespace
}  // namespace seto
