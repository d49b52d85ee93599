#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/seed.h"
#include "transports/rdma/connect/messages.h"

namespace seto::rdma {
namespace {

NamedPort port() {
  NamedPort port;
  port.device = "mlx5_0";
  port.facts.number = 2;
  port.facts.state = PortState::active;
  port.facts.link_layer = LinkLayer::ethernet;
  port.facts.mtu = 4'096;
  port.facts.lid = 7;
  port.facts.needs_global_route = true;
  port.facts.rate_mbit = 400'000;
  port.distance = 21;
  port.facts.gids = {{3, gid_of("10.0.0.1"), GidType::roce_v2, 5, 100}, {4, gid_of("fe80::1"), GidType::roce_v1, 5, 0}};
  port.facts.pkeys = {0xffff, 0x8001};
  return port;
}

ChannelAddress address() { return {77, 0x123456, 0x7f00'0000'1000, 99, 256 << 10, 128, 4'096, 5, gid_of("10.0.0.1")}; }

std::vector<SetUpMessage> every_kind() {
  return {Offer{{port(), port()}, true},
          Proposal{3, address(), {"mlx5_1", 1, 3, {}, 0, 1}, {}},
          Proposal{3, address(), {"mlx5_1", 1, 3, {}, 0, 1}, Token{1, 2, 3}},
          Acceptance{3, address(), {}},
          Acceptance{3, address(), Listener{gid_of("10.0.0.1"), 0x1234}},
          Refusal{3, "no memory"},
          Decision{3, Verdict::give_up, "no path"}};
}

TEST(SetUpMessages, AreDecodedAsTheyWereEncoded) {
  for (const SetUpMessage& message : every_kind()) {
    const std::string bytes = encode(message);
    const auto decoded = decode_set_up(bytes);
    ASSERT_TRUE(decoded.ok()) << message.index();
    ASSERT_EQ(decoded.value().index(), message.index());
    EXPECT_EQ(encode(decoded.value()), bytes);
  }
  const auto offer = std::get<Offer>(decode_set_up(encode(Offer{{port()}})).value());
  ASSERT_EQ(offer.ports.size(), 1U);
  EXPECT_EQ(offer.ports[0].device, "mlx5_0");
  EXPECT_EQ(offer.ports[0].facts.gids.at(0).gid, gid_of("10.0.0.1"));
  EXPECT_EQ(offer.ports[0].facts.gids.at(0).vlan, 100);
  EXPECT_EQ(offer.ports[0].facts.gids.at(0).interface, 0U) << "its number means nothing at another host";
  EXPECT_EQ(offer.ports[0].distance, 21);
  EXPECT_TRUE(offer.ports[0].facts.needs_global_route);
  EXPECT_EQ(offer.ports[0].facts.pkeys, (std::vector<std::uint16_t>{0xffff, 0x8001}));
  EXPECT_FALSE(offer.has_manager);
  EXPECT_TRUE(std::get<Offer>(decode_set_up(encode(Offer{{}, true})).value()).has_manager);
  const auto proposal = std::get<Proposal>(decode_set_up(encode(every_kind()[2])).value());
  EXPECT_EQ(proposal.token, (Token{1, 2, 3}));
  const auto acceptance = std::get<Acceptance>(decode_set_up(encode(every_kind()[4])).value());
  ASSERT_TRUE(acceptance.listener.has_value());
  EXPECT_EQ(acceptance.listener->gid, gid_of("10.0.0.1"));
  EXPECT_EQ(acceptance.listener->service, 0x1234);
}

TEST(SetUpMessages, OfAnyOtherLengthAreRefused) {
  for (const SetUpMessage& message : every_kind()) {
    const std::string bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode_set_up(bytes.substr(0, length)).ok()) << length;
    EXPECT_FALSE(decode_set_up(bytes + "x").ok());
  }
}

TEST(SetUpMessages, ThatAreDamagedAreRefusedOrWithinTheLimits) {
  std::mt19937_64 random(testing::chosen_seed());
  const std::vector<SetUpMessage> all = every_kind();
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = encode(all[random() % all.size()]);
    for (int changes = 0; changes < 2; ++changes) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto decoded = decode_set_up(bytes);
    if (!decoded.ok()) {
      ++refused;
      continue;
    }
    if (const auto* const offer = std::get_if<Offer>(&decoded.value())) {
      ASSERT_LE(offer->ports.size(), kMostPorts);
    }
  }
  EXPECT_GT(refused, 1'000);
}

TEST(SetUpMessages, LeaveOutWhatIsBeyondTheLimits) {
  NamedPort large = port();
  large.facts.gids.assign(1'000, large.facts.gids[0]);
  const auto decoded = decode_set_up(encode(Offer{std::vector<NamedPort>(100, large)}));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<Offer>(decoded.value()).ports.size(), kMostPorts);
  EXPECT_EQ(std::get<Offer>(decoded.value()).ports[0].facts.gids.size(), kMostGidsOfAPort);
}

}  // namespace
}  // namespace seto::rdma
