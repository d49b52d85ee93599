#include "transports/rdma/verbs/interface_facts.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>

namespace seto::rdma {
namespace {

constexpr int kIpv4Bits = 96;  // before an IPv4 address within a GID

// One address of an interface, as getifaddrs lists it.
struct Listed {
  Listed(const char* interface, const char* own, const char* network) : name(interface) {
    entry.ifa_name = name.data();
    entry.ifa_addr = fill(address, own);
    entry.ifa_netmask = fill(mask, network);
  }

  static sockaddr* fill(sockaddr_in6& place, const char* text) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(place);
    const bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, text, &place.sin6_addr) != 1) return nullptr;
    place.sin6_family = is_v4 ? AF_INET : AF_INET6;
    return reinterpret_cast<sockaddr*>(&place);
  }

  std::string name;
  sockaddr_in6 address{};
  sockaddr_in6 mask{};
  ifaddrs entry{};
};

TEST(SubnetBits, FollowTheMaskOfTheAddress) {
  Listed other("a0", "10.0.0.1", "255.255.255.0");
  Listed same("a1", "10.0.0.1", "255.255.128.0");
  Listed v6("a1", "2001:db8::1", "ffff:ffff:ffff:ff00::");
  other.entry.ifa_next = &same.entry;
  same.entry.ifa_next = &v6.entry;
  EXPECT_EQ(subnet_bits_in(&other.entry, "a0", gid_of("10.0.0.1")), kIpv4Bits + 24);
  EXPECT_EQ(subnet_bits_in(&other.entry, "a1", gid_of("10.0.0.1")), kIpv4Bits + 17);
  EXPECT_EQ(subnet_bits_in(&other.entry, "a1", gid_of("2001:db8::1")), 56);
}

TEST(SubnetBits, AreUnknownWithoutTheAddressOrItsMask) {
  Listed bare("a0", "10.0.0.1", "");
  EXPECT_EQ(subnet_bits_in(&bare.entry, "a0", gid_of("10.0.0.1")), 0);
  EXPECT_EQ(subnet_bits_in(&bare.entry, "a0", gid_of("10.0.0.2")), 0);
  EXPECT_EQ(subnet_bits_in(nullptr, "a0", gid_of("10.0.0.1")), 0);
  EXPECT_EQ(subnet_bits_of(0, gid_of("10.0.0.1")), 0);
}

TEST(SubnetBits, AreThoseOfThisMachine) { EXPECT_EQ(subnet_bits_of(if_nametoindex("lo"), gid_of("127.0.0.1")), kIpv4Bits + 8); }

TEST(Vlans, AreReadFromTheTableOfTheKernel) {
  const std::string table =
      "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\nb0.100         | 100  | b0\n";
  EXPECT_EQ(vlan_in(table, "b0.100"), 100);
  EXPECT_EQ(vlan_in(table, "b0"), 0);
}

}  // namespace
}  // namespace seto::rdma
