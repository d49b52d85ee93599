// A link whose sockets lie on several routes (SETO_PATHS).

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/support/tcp_paths.h"

namespace seto::tcp {
namespace {

using support::Buffer;
using TcpRoutes = TcpPaths;

TEST_F(TcpRoutes, EveryByteComesOnceOverSeveralRoutesToo) {
  routes_ = paths_;
  every_byte_comes_once();
}

TEST_F(TcpRoutes, EveryByteComesOnceOverRoutesThatAreUsedTogether) {
  routes_ = paths_;
  together_ = true;
  every_byte_comes_once();
}

// The kernel sees how short the second route is, and the first one is called long, so frames arrive over the second one first.
TEST_F(TcpRoutes, ARouteThatIsFullLeavesTheRestToAnother) {
  constexpr std::size_t kMany = 16'000'000;
  constexpr std::uint32_t kSlowUs = 2'000'000;  // it would stand still after seconds only
  paths_ = routes_ = 2;
  together_ = true;
  connect(true, 60'000, kSlowUs);
  const auto buffer = std::make_shared<Buffer>(kMany);
  const auto expected = queue(0, buffer, 60'000);
  held_[1] = true;
  EXPECT_TRUE(run_until([&] { return carried_[0] > kMany / 4; }));
  EXPECT_EQ(carried_[1], 0U);
  held_[1] = false;
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
  EXPECT_GT(carried_[1], kMany / 100);
}

TEST_F(TcpRoutes, ABrokenRouteLeavesAllToTheOthers) {
  constexpr std::size_t kMany = 2'000'000;
  paths_ = routes_ = 2;
  together_ = true;
  connect(true, 60'000, 60'000);
  const auto buffer = std::make_shared<Buffer>(kMany);
  const auto expected = queue(0, buffer, 60'000);
  held_[1] = true;
  ASSERT_TRUE(run_until([&] { return ends_[0].link->bytes_sent() > carried_[0] + (64 << 10); }))
      << "the second route has taken some";
  cut(1);
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
  EXPECT_EQ(carried_[1], 0U);
}

TEST_F(TcpRoutes, FramesGoOverTheBestRouteThatIsThere) {
  paths_ = routes_ = 2;
  connect(true);
  std::map<std::uint64_t, std::string> expected;
  const auto send_over = [&](std::size_t route) {
    const auto buffer = std::make_shared<Buffer>(500'000);
    expected.merge(queue(0, buffer, 60'000));
    ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
    EXPECT_EQ(ends_[0].link->route(), route);
  };
  ASSERT_NO_FATAL_FAILURE(send_over(0));
  cut(0);
  ASSERT_NO_FATAL_FAILURE(send_over(1));
  renew(0);
  ASSERT_NO_FATAL_FAILURE(send_over(0));
}

// Without it a backup that takes over sends 10 segments in its first round trip.
TEST_F(TcpRoutes, ABackupIsWarmedByPaddingThatIsNoFrame) {
  constexpr std::uint64_t kLeast = 48 << 10;
  paths_ = routes_ = 2;
  connect(true, 60'000, 60'000);
  EXPECT_TRUE(run_until([&] { return carried_[1] >= kLeast; }));
  EXPECT_LT(carried_[0], kLeast) << "the first route carries data at once";
  EXPECT_TRUE(ends_[1].frames.whole.empty());
  const auto buffer = std::make_shared<Buffer>(500'000);
  const auto expected = queue(0, buffer, 60'000);
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
  EXPECT_EQ(ends_[0].link->route(), 0U);
}

// The kernel at the other end of the second route acknowledges all that it holds, so that route does not stand still.
TEST_F(TcpRoutes, FramesOnARouteThatDataHasLeftAreSentAgain) {
  paths_ = routes_ = 2;
  connect(true);
  cut(0);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->route() == 1 && ends_[1].link->route() == 1; }));
  held_[1] = true;
  constexpr std::size_t kSome = 100'000;
  const std::uint64_t before = ends_[0].link->bytes_sent();
  const auto buffer = std::make_shared<Buffer>(kSome);
  const auto expected = queue(0, buffer, 60'000);
  ASSERT_TRUE(run_until([&] { return ends_[0].link->bytes_sent() >= before + kSome; })) << "the second route takes all";
  renew(0);
  EXPECT_TRUE(run_until([&] { return ends_[1].frames.whole == expected; })) << why();
  EXPECT_EQ(ends_[0].link->route(), 0U);
  held_[1] = false;
  EXPECT_TRUE(run_until([&] { return !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
}

// As where it lies on another route than its own: the peer finds a break, and not the end of the link.
TEST_F(TcpRoutes, ASocketThatIsLeftIsBrokenForBothEnds) {
  paths_ = routes_ = 2;
  connect(true);
  const auto buffer = std::make_shared<Buffer>(1 << 20);
  const auto expected = queue(0, buffer, 60'000);
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole.size() > 2; }));
  {
    const std::lock_guard lock(ends_[0].domain->lock());
    EXPECT_TRUE(ends_[0].link->is_live(0));
    ends_[0].link->leave_path(0);
    EXPECT_FALSE(ends_[0].link->is_live(0));
  }
  ASSERT_TRUE(run_until([&] { return ends_[0].link->path_is_broken(0); }));
  EXPECT_GT(ends_[0].dialer->breaks, 0);
  cut(0);  // the wire of the test has two sockets: the peer's is closed with the other one
  ASSERT_TRUE(run_until([&] { return ends_[1].link->path_is_broken(0) && ends_[1].frames.whole == expected; })) << why();
  EXPECT_EQ(ends_[0].link->route(), 1U);
  renew(0);
  EXPECT_TRUE(run_until([&] { return ends_[0].link->is_live(0) && !ends_[0].link->unsent() && !ends_[1].link->unsent(); }));
}

}  // namespace
}  // namespace seto::tcp
