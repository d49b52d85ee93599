#include "src/net/peer_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace seto {
namespace {

using ::testing::HasSubstr;

TEST(PeerListener, ListensOnTheInterfacesThatTheFilterAllows) {
  for (const char* filter : {"", "lo", "127.0.0.0/8"}) {
    auto network = NetworkChoice::parse(filter, "");
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
  auto network = NetworkChoice::parse("127.0.0.1", "");
  ASSERT_TRUE(network.ok());
  auto peers = listen_for_peers(*network, 16);
  ASSERT_TRUE(peers.ok()) << peers.status().text();
  const SocketAddress other = parse_host("127.0.0.2")->with_port(peers->reachable[0].port);
  EXPECT_THAT(std::string(connect_tcp(other, Deadline::after_ms(10'000)).status().text()),
              HasSubstr("no process listens at 127.0.0.2"));
}

TEST(PeerListener, InvalidTextsAreRejected) {
  EXPECT_FALSE(NetworkChoice::parse("10.0.0.0/99", "").ok());
  EXPECT_FALSE(NetworkChoice::parse("", "9-8").ok());
  auto network = NetworkChoice::parse("no-such-interface", "");
  ASSERT_TRUE(network.ok());
  EXPECT_THAT(std::string(listen_for_peers(*network, 1).status().text()),
              HasSubstr("SETO_INTERFACE=no-such-interface leaves no"));
}

}  // namespace
}  // namespace seto
