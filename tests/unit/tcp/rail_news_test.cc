#include "transports/tcp/flow/rail_news.h"

#include <gtest/gtest.h>

namespace seto::tcp {
namespace {

TEST(RailNews, AreSaidOnceForAllRailsOfAPort) {
  RailNews news;
  constexpr std::uint64_t kAt = 5'000'000'000;
  EXPECT_TRUE(news.broke(kAt));
  for (std::uint64_t rail = 0; rail < 32; ++rail) EXPECT_FALSE(news.broke(kAt + rail));
  EXPECT_FALSE(news.broke(kAt + RailNews::kQuietNs - 1));
  EXPECT_TRUE(news.broke(kAt + RailNews::kQuietNs));
  EXPECT_FALSE(news.broke(kAt + RailNews::kQuietNs + 1));
}

TEST(RailNews, SayOnlyTheOtherWay) {
  RailNews news;
  for (const bool rails : {true, false, true}) {
    EXPECT_TRUE(news.goes_over(rails));
    for (int link = 0; link < 32; ++link) EXPECT_FALSE(news.goes_over(rails));
  }
}

}  // namespace
}  // namespace seto::tcp
