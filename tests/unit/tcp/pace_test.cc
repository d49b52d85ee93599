// How fast each socket of a link sends, by the limit of bytes in flight and by the limit of its site.

#include "transports/tcp/flow/pace.h"

#include <gtest/gtest.h>

namespace seto::tcp {
namespace {

TEST(SocketPace, WithoutLimitsThereIsNone) {
  EXPECT_EQ(pace_of_socket(0, 0, 8).bytes_per_second, 0);
  EXPECT_FALSE(pace_of_socket(0, 0, 8).differs_from({})) << "no call of the kernel";
}

TEST(SocketPace, TheSmallerOfBothLimitsCounts) {
  EXPECT_EQ(pace_of_socket(7e6, 0, 8).bytes_per_second, 1e6) << "one of the sockets may stand still";
  EXPECT_DOUBLE_EQ(pace_of_socket(0, 8e6, 8).bytes_per_second, 0.95e6) << "headers take the rest";
  EXPECT_DOUBLE_EQ(pace_of_socket(70e6, 8e6, 8).bytes_per_second, 0.95e6);
  EXPECT_DOUBLE_EQ(pace_of_socket(0.7e6, 8e6, 8).bytes_per_second, 0.1e6);
  EXPECT_DOUBLE_EQ(pace_of_socket(5e6, 8e6, 1).bytes_per_second, 7.6e6) << "one socket has no limit of bytes in flight";
  EXPECT_EQ(pace_of_socket(0, 1, 16).bytes_per_second, 1) << "0 would be no pace at all";
}

TEST(SocketPace, TheSocketsTogetherStayBelowTheLimitOfTheSite) {
  for (std::size_t sockets = 1; sockets <= 16; ++sockets)
    EXPECT_LT(static_cast<double>(sockets) * pace_of_socket(1e9, 10e6, sockets).bytes_per_second, 10e6) << sockets;
}

TEST(SocketPace, ASmallChangeIsNotWorthACall) {
  const SocketPace set = pace_of_socket(7e6, 0, 8);
  EXPECT_FALSE(pace_of_socket(7.1e6, 0, 8).differs_from(set));
  EXPECT_FALSE(pace_of_socket(6.9e6, 0, 8).differs_from(set));
  EXPECT_TRUE(pace_of_socket(7.2e6, 0, 8).differs_from(set));
  EXPECT_TRUE(pace_of_socket(0, 0, 8).differs_from(set));
  EXPECT_TRUE(set.differs_from({}));
}

TEST(SocketPace, NoSocketStaysAboveItsShareOfALimit) {
  const SocketPace set = pace_of_socket(0, 8e6, 8);
  EXPECT_TRUE(pace_of_socket(0, 7.99e6, 8).differs_from(set)) << "a little less";
  EXPECT_FALSE(pace_of_socket(0, 8.01e6, 8).differs_from(set)) << "a little more may wait";
}

}  // namespace
}  // namespace seto::tcp
