#include "transports/tcp/connect/tcp_sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/net/traffic_class.h"

namespace seto::tcp {
namespace {

constexpr std::uint32_t kNear = 80;
constexpr std::uint32_t kFar = 60'000;

std::uint32_t sockets_of(const LinkTerms& one, const LinkTerms& other) {
  const LinkTerms agreed = LinkTerms::agree(one, other);
  const LinkTerms reversed = LinkTerms::agree(other, one);
  EXPECT_EQ(agreed.sockets, reversed.sockets) << "both ends must open the same number";
  EXPECT_EQ(agreed.round_trip_us, reversed.round_trip_us);
  return agreed.sockets;
}

TEST(LinkTerms, ANearLinkHasOneSocketAndAFarOneSeveral) {
  EXPECT_EQ(sockets_of({0, kNear}, {0, kNear}), 1U);
  EXPECT_EQ(sockets_of({0, kFar}, {0, kFar}), 8U);
  EXPECT_EQ(sockets_of({0, 999}, {0, 999}), 1U);
  EXPECT_EQ(sockets_of({0, 1'000}, {0, 1'000}), 8U) << "the same limit as that of windows";
}

TEST(LinkTerms, TheShorterRoundTripIsTrueAndAnUnknownOneSaysNothing) {
  EXPECT_EQ(LinkTerms::agree({0, kFar}, {0, kNear}).round_trip_us, kNear) << "a busy machine measured the other";
  EXPECT_EQ(sockets_of({0, kFar}, {0, kNear}), 1U);
  EXPECT_EQ(LinkTerms::agree({0, 0}, {0, kFar}).round_trip_us, kFar);
  EXPECT_EQ(sockets_of({0, 0}, {0, kFar}), 8U);
  EXPECT_EQ(sockets_of({0, 0}, {0, 0}), 1U);
}

TEST(LinkTerms, TheLargerNumberThatWasSetCounts) {
  EXPECT_EQ(sockets_of({3, kFar}, {0, kFar}), 3U);
  EXPECT_EQ(sockets_of({3, kNear}, {5, kNear}), 5U);
  EXPECT_EQ(sockets_of({1, kFar}, {1, kFar}), 1U);
}

TEST(DataSocket, HasTheMarkOfData) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_traffic_marks({46, 10});
  prepare_tcp_socket(socket.get());
  set_traffic_marks({});
  int value = 0;
  socklen_t size = sizeof value;
  ASSERT_EQ(getsockopt(socket.get(), IPPROTO_IP, IP_TOS, &value, &size), 0);
  EXPECT_EQ(value, 10 << 2);
}

}  // namespace
}  // namespace seto::tcp
