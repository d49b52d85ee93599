#include "src/net/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <string>

#include "tests/support/own_threads.h"

namespace seto {
namespace {

using ::testing::HasSubstr;

TEST(SocketAddress, TextAndBack) {
  for (const char* text : {"10.0.0.1:80", "0.0.0.0:0", "[::1]:65535", "[2001:db8::17]:4711", "[fe80::1%lo]:9"}) {
    auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << address.status().text();
    EXPECT_EQ(to_text(*address), text);
    const NativeAddress there = native(*address);
    EXPECT_EQ(*from_native(there.get()), *address);
  }
  EXPECT_EQ(parse_address("[fe80::1%lo]:9").value().scope, if_nametoindex("lo"));
  EXPECT_EQ(to_text(parse_address("[::ffff:10.0.0.1]:80").value()), "10.0.0.1:80") << "mapped addresses are IPv4";
}

TEST(SocketAddress, InvalidTextsAreRejected) {
  for (const char* text : {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "10.0.0:80", "::1:80", "[::1]", "[::1:80", "[::1]80",
                           ":80", "[fe80::1%]:80", "10.0.0.1%lo:80", "name:80", "10.0.0.1:+8", "[]:80"}) {
    EXPECT_FALSE(parse_address(text).ok()) << text;
  }
  EXPECT_THAT(std::string(parse_address("node1").status().text()), HasSubstr("write host:port"));
}

TEST(SocketAddress, HostAndPort) {
  EXPECT_EQ(parse_host_port("node-1.example:4711").value().host, "node-1.example");
  EXPECT_EQ(parse_host_port("[::1]:4711").value().host, "::1");
  EXPECT_EQ(parse_host_port("[::1]:4711").value().port, 4711);
}

TEST(SocketAddress, Scopes) {
  EXPECT_TRUE(parse_host("127.3.0.1")->is_loopback());
  EXPECT_TRUE(parse_host("::1")->is_loopback());
  EXPECT_FALSE(parse_host("::2")->is_loopback());
  EXPECT_FALSE(parse_host("10.0.0.1")->is_loopback());
  EXPECT_TRUE(parse_host("169.254.7.1")->is_link_local());
  EXPECT_TRUE(parse_host("febf::1")->is_link_local());
  EXPECT_FALSE(parse_host("fec0::1")->is_link_local());
  EXPECT_TRUE(any_address(AddressFamily::ipv6).is_any());
}

TEST(SocketAddress, IsEncodedInNineteenBytesWithoutItsScope) {
  const SocketAddress four = parse_address("10.1.2.3:443").value();
  EXPECT_EQ(*decode_address(encode(four)), four);
  SocketAddress six = parse_address("[fe80::1%lo]:443").value();
  const auto back = decode_address(encode(six));
  six.scope = 0;
  EXPECT_EQ(*back, six);
  EncodedAddress garbage = encode(four);
  garbage[0] = 7;
  EXPECT_FALSE(decode_address(garbage));
}

TEST(Resolve, NumbersAndLocalhost) {
  EXPECT_EQ(to_text(resolve({"10.0.0.1", 80}, Deadline::after_ms(0)).value()), "10.0.0.1:80");
  auto local = resolve({"localhost", 80}, Deadline::after_ms(20'000));
  ASSERT_TRUE(local.ok()) << local.status().text();
  for (const SocketAddress& address : *local) EXPECT_TRUE(address.is_loopback()) << to_text(address);
}

// RFC 2606: no host has a name in .invalid. Without a name server the look-up fails too, or is slow.
TEST(Resolve, AFailureNamesTheHost) {
  const auto none = resolve({"no-such-host.invalid", 80}, Deadline::after_ms(3'000));
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().text()), HasSubstr("'no-such-host.invalid'"));
  EXPECT_THAT(std::string(none.status().text()), HasSubstr("give a numeric address"));
  const auto late = resolve({"no-such-host.invalid", 80}, Deadline::after_ms(0));
  EXPECT_THAT(std::string(late.status().text()), HasSubstr("give a numeric address"));
  // The late look-up continues. If a process ended while its thread runs, a leak checker would report the resolver's memory.
  EXPECT_LE(testing::threads_left("seto-resolve", 0), 1);
}

}  // namespace
}  // namespace seto
