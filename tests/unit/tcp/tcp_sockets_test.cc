#include "transports/tcp/connect/tcp_sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/net/traffic_class.h"
#include "transports/tcp/flow/flight_limit.h"
#include "transports/tcp/link/routes.h"

namespace seto::tcp {
namespace {

constexpr std::uint32_t kNear = 80;
constexpr std::uint32_t kFar = 60'000;

std::uint32_t sockets_of(const LinkTerms& one, const LinkTerms& other, const SocketNeed& need = {}) {
  SocketWish wish;
  wish.need = need;
  const LinkTerms agreed = LinkTerms::agree(one, other, wish);
  const LinkTerms reversed = LinkTerms::agree(other, one, wish);
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
  EXPECT_EQ(LinkTerms::agree({0, kFar}, {0, kNear}, {}).round_trip_us, kNear) << "a busy machine measured the other";
  EXPECT_EQ(sockets_of({0, kFar}, {0, kNear}), 1U);
  EXPECT_EQ(LinkTerms::agree({0, 0}, {0, kFar}, {}).round_trip_us, kFar);
  EXPECT_EQ(sockets_of({0, 0}, {0, kFar}), 8U);
  EXPECT_EQ(sockets_of({0, 0}, {0, 0}), 1U);
}

TEST(LinkTerms, TheLargerNumberThatWasSetCounts) {
  EXPECT_EQ(sockets_of({3, kFar}, {0, kFar}), 3U);
  EXPECT_EQ(sockets_of({3, kNear}, {5, kNear}), 5U);
  EXPECT_EQ(sockets_of({1, kFar}, {1, kFar}), 1U);
}

TEST(LinkTerms, TheSocketsCarryTheShareOfTwoRanksInTheLink) {
  const LinkTerms far{0, kFar};
  EXPECT_EQ(sockets_of(far, far, {.bytes_per_second = 125e6}), 3U) << "7.5 MB a round trip, 3.1 MB a socket";
  EXPECT_EQ(sockets_of(far, far, {.bytes_per_second = 250e6}), 5U);
  EXPECT_EQ(sockets_of(far, far, {.bytes_per_second = 12.5e9}), 16U);
  EXPECT_EQ(sockets_of(far, far, {.bytes_per_second = 1e6}), 2U) << "one may stand still after a loss";
  EXPECT_EQ(sockets_of(far, far, {.bytes_per_second = 125e6, .sharers = 4}), 1U);
  EXPECT_EQ(sockets_of(far, far, {.bytes_per_second = 1.25e9, .sharers = 4}), 7U) << "a share of 312 MB/s";
  EXPECT_EQ(sockets_of(far, far, {.sharers = 4}), 2U) << "the eight of a link whose rate is unknown";
  EXPECT_EQ(sockets_of(far, far, {.sharers = 3}), 3U);
  EXPECT_EQ(sockets_of(far, far, {.sharers = 100}), 2U) << "a pair may use the link alone";
  EXPECT_EQ(sockets_of({5, kFar}, far, {.bytes_per_second = 125e6, .sharers = 4}), 5U) << "SETO_TCP_STREAMS";
  EXPECT_EQ(sockets_of({0, kNear}, {0, kNear}, {.bytes_per_second = 12.5e9}), 1U);
}

TEST(SocketWish, ALinkContinuesIfItIsFarUnlessOneEndSaysOtherwise) {
  const SocketWish automatic{.set = kAutomaticSockets, .need = {}, .resume = Resume::automatic};
  EXPECT_TRUE(automatic.continues(2, 1'000));
  EXPECT_FALSE(automatic.continues(2, 999)) << "near";
  EXPECT_TRUE(automatic.continues(1, kFar));
  const SocketWish on{.set = kAutomaticSockets, .need = {}, .resume = Resume::on};
  EXPECT_TRUE(on.continues(2, kNear));
  EXPECT_FALSE(on.continues(1, kNear));
  const SocketWish off{.set = kAutomaticSockets, .need = {}, .resume = Resume::off};
  EXPECT_TRUE(automatic.adapts(8, kFar));
  EXPECT_FALSE(automatic.adapts(8, FlightLimit::kLeastRoundTripUs - 1));
  EXPECT_FALSE(off.adapts(8, kFar)) << "none can be opened later";
  SocketWish stated;
  stated.set = 8;
  EXPECT_FALSE(stated.adapts(8, kFar));
  SocketWish of_several_routes;
  of_several_routes.routes = 2;
  EXPECT_FALSE(of_several_routes.adapts(16, kFar));
  EXPECT_FALSE(off.continues(8, kFar));
}

TEST(SocketWish, AFarLinkHasAsManySocketsOnEachRoute) {
  SocketWish two{.set = kAutomaticSockets, .need = {}, .resume = Resume::automatic, .routes = 2};
  EXPECT_EQ(two.sockets(kFar), 16U);
  EXPECT_EQ(two.routes_of(kFar), 2U);
  EXPECT_EQ(two.sockets(kNear), 1U) << "within a site there is one route";
  EXPECT_EQ(two.routes_of(kNear), 1U);
  two.set = 3;
  EXPECT_EQ(two.sockets(kFar), 6U);
  two.routes = 4;
  two.set = 16;
  EXPECT_EQ(two.sockets(kFar), 16U) << "no more than a link may have";
  two.resume = Resume::off;
  EXPECT_EQ(two.routes_of(kFar), 1U) << "without resume the first socket that breaks would end the link";
}

TEST(Routes, TheFirstSocketsAreOnTheBestRoute) {
  for (std::size_t index = 0; index < 6; ++index) EXPECT_EQ(route_of_socket(index, 6, 2), index / 3);
  for (std::size_t index = 0; index < 6; ++index) EXPECT_EQ(path_to_request(index, 6, 2), index / 3 + 1);
  EXPECT_EQ(path_to_request(5, 6, 1), 0U) << "any address";
}

TEST(SocketWish, BothEndsAgreeWhetherALinkContinues) {
  const Resume all[] = {Resume::automatic, Resume::off, Resume::on};
  for (const Resume one : all)
    for (const Resume other : all) {
      EXPECT_EQ(agree(one, other), agree(other, one));
      EXPECT_EQ(agree(one, other) == Resume::off, one == Resume::off || other == Resume::off);
    }
  EXPECT_EQ(agree(Resume::automatic, Resume::on), Resume::on);
  EXPECT_EQ(agree(Resume::automatic, Resume::automatic), Resume::automatic);
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
