#include "transports/rdma/link/channel_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/seed.h"

namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

ChannelAddress good() { return {77, 0x123456, 0x7f00'0000'1000, 99, 256 << 10, 128, 4'096, 5, gid_of("10.0.0.1")}; }

TEST(ChannelAddress, IsDecodedAsItWasEncoded) {
  const auto decoded = ChannelAddress::decode(good().encoded());
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  EXPECT_EQ(decoded.value(), good());
}

TEST(ChannelAddress, OfAnotherLengthOrVersionIsRefused) {
  std::string bytes = good().encoded();
  EXPECT_THAT(std::string(ChannelAddress::decode(bytes + "x").status().text()), HasSubstr("another version"));
  bytes[0] = 9;
  EXPECT_THAT(std::string(ChannelAddress::decode(bytes).status().text()), HasSubstr("version 9"));
}

TEST(ChannelAddress, BeyondTheBoundsIsRefused) {
  const auto refused = [](auto change) {
    ChannelAddress address = good();
    change(address);
    return !ChannelAddress::decode(address.encoded()).ok();
  };
  EXPECT_TRUE(refused([](auto& one) { one.queue_pair = 1U << 24; }));
  EXPECT_TRUE(refused([](auto& one) { one.sequence = 1U << 24; }));
  EXPECT_TRUE(refused([](auto& one) { one.ring_size = 64; }));
  EXPECT_TRUE(refused([](auto& one) { one.ring_size = std::uint64_t{1} << 40; }));
  EXPECT_TRUE(refused([](auto& one) { ++one.ring_size; }));
  EXPECT_TRUE(refused([](auto& one) { ++one.ring; }));
  EXPECT_TRUE(refused([](auto& one) { one.records = 0; }));
  EXPECT_TRUE(refused([](auto& one) { one.records = 1U << 20; }));
  EXPECT_TRUE(refused([](auto& one) { one.mtu = 9'000; }));
}

TEST(ChannelAddress, RandomBytesAreRefusedOrWithinTheBounds) {
  std::mt19937_64 random(testing::chosen_seed());
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = good().encoded();
    for (int changes = 0; changes < 3; ++changes) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto decoded = ChannelAddress::decode(bytes);
    if (!decoded.ok()) continue;
    EXPECT_LE(decoded.value().ring_size, kLargestRing);
    EXPECT_LE(decoded.value().records, kMostRecords);
  }
}

}  // namespace
}  // namespace seto::rdma
