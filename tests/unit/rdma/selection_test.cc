#include "transports/rdma/connect/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

NamedPort ethernet(const std::string& device, std::vector<GidEntry> gids) {
  NamedPort port;
  port.device = device;
  port.facts.state = PortState::active;
  port.facts.link_layer = LinkLayer::ethernet;
  port.facts.mtu = 4'096;
  port.facts.rate_mbit = 100'000;
  port.facts.gids = std::move(gids);
  port.facts.pkeys = {0xffff};
  return port;
}

GidEntry v1(std::uint32_t index, const std::string& address, std::uint32_t interface = 2, std::uint16_t vlan = 0) {
  return {index, gid_of(address), GidType::roce_v1, interface, vlan};
}
GidEntry v2(std::uint32_t index, const std::string& address, std::uint32_t interface = 2, std::uint16_t vlan = 0) {
  return {index, gid_of(address), GidType::roce_v2, interface, vlan};
}

NamedPort infiniband(const std::string& device, std::uint16_t lid, const std::string& gid = "fe80::1") {
  NamedPort port;
  port.device = device;
  port.facts.state = PortState::active;
  port.facts.link_layer = LinkLayer::infiniband;
  port.facts.mtu = 4'096;
  port.facts.lid = lid;
  port.facts.gids = {{0, gid_of(gid), GidType::infiniband, 0, 0}};
  port.facts.pkeys = {0xffff};
  return port;
}

// The table of a port as Linux fills it: link-local first, each address in both types.
std::vector<GidEntry> usual(const std::string& local, const std::string& address) {
  return {v1(0, local), v2(1, local), v1(2, address), v2(3, address)};
}

// ---- which address ----

struct GidCase {
  const char* name;
  std::vector<GidEntry> own;
  std::vector<GidEntry> peer;
  std::uint32_t interface;
  std::uint32_t own_index;  // of the best candidate
  std::uint32_t peer_index;
};

class BestGid : public ::testing::TestWithParam<GidCase> {};

TEST_P(BestGid, IsChosen) {
  const GidCase& one = GetParam();
  const Selection selection = select({{ethernet("a", one.own)}, {ethernet("b", one.peer)}, one.interface});
  ASSERT_FALSE(selection.candidates.empty());
  const Candidate& best = selection.candidates.front();
  EXPECT_EQ(best.own.gid_index, one.own_index) << to_text(best);
  EXPECT_EQ(best.peer.gid_index, one.peer_index) << to_text(best);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BestGid,
    ::testing::Values(
        GidCase{"RoutableOfVersion2", usual("fe80::a", "10.0.0.1"), usual("fe80::b", "10.0.0.2"), 2, 3, 3},
        GidCase{"Version2EvenIfLinkLocal", {v2(1, "fe80::a"), v1(2, "10.0.0.1")}, {v2(1, "fe80::b"), v1(2, "10.0.0.2")}, 2, 1, 1},
        GidCase{
            "LinkLocalIfAllElseIsMissing", {v1(0, "fe80::a"), v2(1, "fe80::a")}, {v1(0, "fe80::b"), v2(1, "fe80::b")}, 0, 1, 1},
        GidCase{"Version1IfOneEndHasNoOther", {v1(0, "10.0.0.1"), v2(1, "10.0.0.1")}, {v1(5, "10.0.0.2")}, 2, 0, 5},
        GidCase{"OfTheInterfaceTowardsThePeer",
                {v2(3, "10.0.0.1", 2), v2(5, "10.9.0.1", 7)},
                {v2(3, "10.0.0.2", 2), v2(5, "10.9.0.2", 7)},
                7,
                5,
                5},
        GidCase{"OfTheSameVlan", {v2(3, "10.0.0.1", 2, 0), v2(5, "10.1.0.1", 8, 100)}, {v2(5, "10.1.0.2", 8, 100)}, 0, 5, 5},
        GidCase{"OfTheClosestNetwork", {v2(3, "10.0.0.1"), v2(4, "10.0.7.1")}, {v2(3, "10.0.7.2")}, 0, 4, 3},
        GidCase{"OfTheSameFamily", {v2(1, "2001:db8::1"), v2(3, "10.0.0.1")}, {v2(2, "2001:db8::2")}, 0, 1, 2}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- which port ----

TEST(Selection, PairsEachRailWithThatOfItsNetwork) {
  const std::vector<NamedPort> own{ethernet("a0", usual("fe80::1", "10.0.0.1")), ethernet("a1", usual("fe80::2", "10.0.1.1"))};
  const std::vector<NamedPort> peer{ethernet("b0", usual("fe80::3", "10.0.1.2")), ethernet("b1", usual("fe80::4", "10.0.0.2"))};
  const Selection selection = select({own, peer, 0});
  ASSERT_GE(selection.candidates.size(), 2U);
  EXPECT_EQ(selection.candidates[0].peer.gid,
            gid_of(selection.candidates[0].own.gid == gid_of("10.0.0.1") ? "10.0.0.2" : "10.0.1.2"));
  EXPECT_NE(selection.candidates[0].own.device, selection.candidates[1].own.device);
}

TEST(Selection, TakesTheFasterOfTwoEqualPorts) {
  std::vector<NamedPort> own{ethernet("slow", {v2(3, "10.0.0.1")}), ethernet("fast", {v2(3, "10.0.0.3")})};
  own[0].facts.rate_mbit = 10'000;
  NamedPort peer = ethernet("b", {v2(3, "10.0.0.128")});
  EXPECT_EQ(select({own, {peer}, 0}).candidates.front().own.device, "fast");
}

TEST(Selection, UsesTheSmallerMtu) {
  NamedPort own = ethernet("a", {v2(3, "10.0.0.1")});
  NamedPort peer = ethernet("b", {v2(3, "10.0.0.2")});
  peer.facts.mtu = 1'024;
  EXPECT_EQ(select({{own}, {peer}, 0}).candidates.front().mtu, 1'024U);
}

TEST(Selection, SkipsPortsThatAreDown) {
  NamedPort down = ethernet("down", {v2(3, "10.0.0.1")});
  down.facts.state = PortState::down;
  const NamedPort up = ethernet("up", {v2(3, "10.0.9.1")});
  const Selection selection = select({{down, up}, {ethernet("b", {v2(3, "10.0.0.2")})}, 0});
  ASSERT_EQ(selection.candidates.size(), 1U);
  EXPECT_EQ(selection.candidates.front().own.device, "up");
  ASSERT_EQ(selection.rejected.size(), 1U);
  EXPECT_THAT(selection.rejected.front(), HasSubstr("down port 1 is not active"));
}

TEST(Selection, AnotherSubnetComesLastAndIsNotExcluded) {
  // RoCE v2 may be routed, and only a probe can tell.
  const std::vector<NamedPort> own{ethernet("far", {v2(3, "192.168.0.1")}), ethernet("near", {v2(3, "10.0.0.1")})};
  const Selection selection = select({own, {ethernet("b", {v2(3, "10.0.0.2")})}, 0});
  ASSERT_EQ(selection.candidates.size(), 2U);
  EXPECT_EQ(selection.candidates[0].own.device, "near");
  EXPECT_EQ(selection.candidates[1].own.device, "far");
}

TEST(Selection, ASubnetIsAsWideAsItsMask) {
  NamedPort wide = ethernet("wide", {v2(3, "10.0.0.1")});
  wide.facts.gids[0].subnet_bits = 96 + 16;
  wide.distance = kNear + 1;
  const NamedPort other = ethernet("other", {v2(3, "192.168.0.1")});
  EXPECT_EQ(select({{other, wide}, {ethernet("b", {v2(3, "10.0.7.2")})}, 0}).candidates.front().own.device, "wide");
}

TEST(Selection, ASubnetIsAsNarrowAsItsMask) {
  NamedPort near = ethernet("near", {v2(3, "10.0.0.1")});
  near.facts.gids[0].subnet_bits = 96 + 25;
  NamedPort same = ethernet("same", {v2(3, "10.0.0.130")});
  same.facts.gids[0].subnet_bits = 96 + 25;
  same.distance = kNear + 1;
  EXPECT_EQ(select({{near, same}, {ethernet("b", {v2(3, "10.0.0.200")})}, 0}).candidates.front().own.device, "same");
}

// ---- InfiniBand ----

TEST(Selection, OfOneInfinibandSubnetNeedsNoGlobalRoute) {
  const Selection selection = select({{infiniband("a", 4)}, {infiniband("b", 9, "fe80::2")}, 0});
  ASSERT_EQ(selection.candidates.size(), 1U);
  EXPECT_FALSE(selection.candidates.front().own.gid_index.has_value());
  EXPECT_EQ(selection.candidates.front().peer.lid, 9);
}

TEST(Selection, OfTwoInfinibandSubnetsNeedsOne) {
  const Selection selection = select({{infiniband("a", 4)}, {infiniband("b", 9, "fec0::2")}, 0});
  ASSERT_EQ(selection.candidates.size(), 1U);
  EXPECT_EQ(selection.candidates.front().own.gid_index, 0U);
  EXPECT_THAT(selection.candidates.front().why, HasSubstr("router"));
}

// One of both is a virtual function: several of them have one LID.
TEST(Selection, OfPortsThatShareALidNeedsAGlobalRoute) {
  for (const bool own : {true, false}) {
    NamedPort one = infiniband("a", 4), other = infiniband("b", 9, "fe80::2");
    (own ? one : other).facts.needs_global_route = true;
    const Selection selection = select({{one}, {other}, 0});
    ASSERT_EQ(selection.candidates.size(), 1U);
    EXPECT_EQ(selection.candidates.front().own.gid_index, 0U);
    EXPECT_EQ(selection.candidates.front().peer.gid, gid_of("fe80::2"));
    EXPECT_EQ(selection.candidates.front().peer.lid, 9) << "switches still go by it";
    EXPECT_THAT(selection.candidates.front().why, HasSubstr("by GID: ports share a LID"));
    (own ? other : one).facts.gids.clear();
    const Selection none = select({{one}, {other}, 0});
    EXPECT_TRUE(none.candidates.empty());
    EXPECT_THAT(none.rejected.at(0), HasSubstr(own ? "b port 1 has no GID" : "a port 1 has no GID"));
  }
}

TEST(Selection, TakesThePartitionThatBothPortsShare) {
  NamedPort own = infiniband("a", 4);
  NamedPort peer = infiniband("b", 9);
  own.facts.pkeys = {0x7fff, 0x8001, 0x8002};
  peer.facts.pkeys = {0x7fff, 0x8003, 0x0002};
  const Selection selection = select({{own}, {peer}, 0});
  ASSERT_EQ(selection.candidates.size(), 1U);  // two limited members of the default partition do not talk to each other
  EXPECT_EQ(selection.candidates.front().own.pkey_index, 2);
  EXPECT_EQ(selection.candidates.front().peer.pkey_index, 2);
}

// ---- none ----

struct NoneCase {
  const char* name;
  std::vector<NamedPort> own;
  std::vector<NamedPort> peer;
  const char* text;
};

NamedPort with_state(NamedPort port, PortState state) {
  port.facts.state = state;
  return port;
}
NamedPort with_pkeys(NamedPort port, std::vector<std::uint16_t> pkeys) {
  port.facts.pkeys = std::move(pkeys);
  return port;
}

class NoPort : public ::testing::TestWithParam<NoneCase> {};

TEST_P(NoPort, IsExplained) {
  const SelectionInput input{GetParam().own, GetParam().peer, 0};
  const Selection selection = select(input);
  EXPECT_TRUE(selection.candidates.empty());
  EXPECT_THAT(explain_none(input, selection), HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, NoPort,
    ::testing::Values(
        NoneCase{"NoDeviceHere", {}, {infiniband("b", 1)}, "this host has no RDMA device"},
        NoneCase{"NoDeviceThere", {infiniband("a", 1)}, {}, "the peer's host has no RDMA device"},
        NoneCase{
            "PortDown", {with_state(infiniband("a", 1), PortState::down)}, {infiniband("b", 2)}, "own a port 1 is not active"},
        NoneCase{"PortArmed",
                 {infiniband("a", 1)},
                 {with_state(infiniband("b", 2), PortState::armed)},
                 "the peer's b port 1 is not active"},
        NoneCase{"NoGid", {ethernet("a", {})}, {ethernet("b", {v2(3, "10.0.0.2")})}, "a port 1 has no GID"},
        NoneCase{"NoGidThere", {ethernet("a", {v2(3, "10.0.0.2")})}, {ethernet("b", {})}, "b port 1 has no GID"},
        NoneCase{"TwoLinkLayers",
                 {ethernet("a", {v2(3, "10.0.0.2")})},
                 {infiniband("b", 2)},
                 "one is InfiniBand and the other Ethernet"},
        NoneCase{"NoLid", {infiniband("a", 0)}, {infiniband("b", 2)}, "no subnet manager"},
        NoneCase{"NoPartition",
                 {with_pkeys(infiniband("a", 1), {0x8001})},
                 {with_pkeys(infiniband("b", 2), {0x8002})},
                 "no partition key in common"},
        NoneCase{
            "TwoVersions", {ethernet("a", {v2(1, "10.0.0.1")})}, {ethernet("b", {v1(1, "10.0.0.2")})}, "different types of RoCE"},
        NoneCase{
            "TwoFamilies", {ethernet("a", {v2(1, "10.0.0.1")})}, {ethernet("b", {v2(1, "2001:db8::1")})}, "different families"},
        NoneCase{"TwoVlansOfOneLink",
                 {ethernet("a", {v1(1, "10.0.0.1", 2, 5)})},
                 {ethernet("b", {v1(1, "10.0.0.2", 2, 6)})},
                 "different VLANs"},
        NoneCase{"LinkLocalAgainstRoutable",
                 {ethernet("a", {v2(1, "fe80::1")})},
                 {ethernet("b", {v2(1, "2001:db8::1")})},
                 "link-local"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Selection, SaysWhatWasChosenAndWhy) {
  const Selection selection =
      select({{ethernet("mlx5_0", usual("fe80::a", "10.0.0.1"))}, {ethernet("b", usual("fe80::b", "10.0.0.2"))}, 2});
  EXPECT_EQ(to_text(selection.candidates.front()),
            "mlx5_0 port 1, GID 3 (10.0.0.1), MTU 4096, 100 Gbit/s: RoCE v2, on the interface towards the peer");
}

// ---- distance ----

NamedPort at(std::uint8_t distance, NamedPort port) {
  port.distance = distance;
  return port;
}

TEST(Distance, NearPortsComeBeforeTheInterfaceTowardsThePeer) {
  const std::vector<NamedPort> own = {at(21, ethernet("a0", {v2(3, "10.0.0.1", 2)})), ethernet("a1", {v2(3, "10.0.0.3", 3)})};
  const std::vector<NamedPort> peer = {at(21, ethernet("b0", {v2(3, "10.0.0.2")})), ethernet("b1", {v2(3, "10.0.0.4")})};
  const Selection selection = select({own, peer, 2});
  ASSERT_EQ(selection.candidates.size(), 4U);
  EXPECT_EQ(selection.candidates[0].own.device, "a1");
  EXPECT_EQ(selection.candidates[0].peer.device, "b1");
  EXPECT_EQ(selection.candidates[3].own.device, "a0");
  EXPECT_EQ(selection.candidates[3].peer.device, "b0");
  EXPECT_THAT(selection.candidates[3].why,
              HasSubstr("towards the peer, far from the memory of this rank, far from that of the peer"));
}

// A near port in another subnet may reach nothing, and each try takes seconds.
TEST(Distance, AFarPortInTheSubnetComesBeforeANearOneInAnother) {
  const std::vector<NamedPort> own = {ethernet("a0", {v2(3, "10.0.0.1", 2)}), at(21, ethernet("a1", {v2(3, "10.1.0.1", 3)}))};
  const Selection selection = select({own, {ethernet("b1", {v2(3, "10.1.0.2")})}, 0});
  ASSERT_EQ(selection.candidates.size(), 2U);
  EXPECT_EQ(selection.candidates[0].own.device, "a1");
}

TEST(Distance, CountsOnInfiniBand) {
  const std::vector<NamedPort> own = {at(21, infiniband("a0", 1)), infiniband("a1", 2)};
  const Selection selection = select({own, {infiniband("b0", 3)}, 0});
  ASSERT_EQ(selection.candidates.size(), 2U);
  EXPECT_EQ(selection.candidates[0].own.device, "a1");
}

}  // namespace
}  // namespace seto::rdma
