#include "src/net/peer_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace seto {
namespace {

using ::testing::HasSubstr;

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
