// A far link whose number of sockets follows what they carry: it has places for further sockets.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/support/tcp_paths.h"

namespace seto::tcp {
namespace {

using support::Buffer;

constexpr std::uint32_t kFarUs = 10'000;
constexpr std::size_t kOpened = 2;
constexpr std::size_t kSpare = 2;  // the first place without a socket

class TcpSocketCount : public TcpPaths {
 protected:
  void connect_two() {
    adapts_ = true;
    paths_ = kOpened;
    connect(true, 60'000, kFarUs);
    paths_ = kOpened + 1;  // wires that the test carries
  }
  // Frames from end 0 arrive. Returns whether all did.
  bool sends(std::size_t size) {
    expected_.merge(queue(0, std::make_shared<Buffer>(size), 60'000));
    return run_until([&] { return ends_[1].frames.whole == expected_; });
  }
  void ask_for(std::uint64_t sockets) {
    Frame frame;
    frame.set_kind(FrameKind::sockets);
    frame.mark = sockets;
    const std::lock_guard lock(ends_[0].domain->lock());
    ends_[0].link->queue_urgent(frame);
  }
  [[nodiscard]] std::size_t wanted(std::size_t end) {
    const std::lock_guard lock(ends_[end].domain->lock());
    return ends_[end].link->wanted_sockets();
  }
  [[nodiscard]] bool has(std::size_t end, std::size_t path) {
    const std::lock_guard lock(ends_[end].domain->lock());
    return !ends_[end].link->path_is_broken(path);
  }

  std::map<std::uint64_t, std::string> expected_;
};

TEST_F(TcpSocketCount, PlacesWithoutSocketsAreNotDialed) {
  connect_two();
  ASSERT_TRUE(sends(500'000)) << why();
  EXPECT_EQ(ends_[0].link->sockets(), 2 * kOpened);
  EXPECT_EQ(wanted(0), kOpened);
  EXPECT_FALSE(ends_[0].link->wants_path(kSpare));
  EXPECT_EQ(ends_[0].dialer->breaks + ends_[1].dialer->breaks, 0);
}

TEST_F(TcpSocketCount, TheOtherEndOpensWhatThePeerWants) {
  connect_two();
  ask_for(3);
  ASSERT_TRUE(run_until([&] { return wanted(1) == 3; })) << why();
  EXPECT_EQ(ends_[1].dialer->breaks, 1);
  EXPECT_TRUE(ends_[1].link->wants_path(kSpare));
  EXPECT_FALSE(ends_[1].link->wants_path(kSpare + 1));
  ask_for(2);
  ASSERT_TRUE(run_until([&] { return wanted(1) == 2; })) << why();
  EXPECT_FALSE(ends_[1].link->wants_path(kSpare));
}

TEST_F(TcpSocketCount, APeerCannotAskForMoreThanThePlaces) {
  connect_two();
  ask_for(~std::uint64_t{0});
  ASSERT_TRUE(run_until([&] { return wanted(1) > kOpened; })) << why();
  EXPECT_EQ(wanted(1), 2 * kOpened);
  ask_for(0);
  ASSERT_TRUE(run_until([&] { return wanted(1) == kOpened; })) << "its own end still uses these";
}

TEST_F(TcpSocketCount, ASocketThatIsNotUsedServesWhereAllOthersBreak) {
  connect_two();
  renew(kSpare);
  ASSERT_TRUE(run_until([&] { return has(0, kSpare) && has(1, kSpare); })) << why();
  ASSERT_TRUE(sends(1'000'000)) << why();
  EXPECT_LT(carried_[kSpare], 2'000U) << "openings only";
  cut(0);
  cut(1);
  ASSERT_TRUE(sends(1'000'000)) << why();
  EXPECT_GT(carried_[kSpare], 1'000'000U);
}

TEST_F(TcpSocketCount, WhereOneBreaksOneThatIsNotUsedTakesItsPlace) {
  connect_two();
  renew(kSpare);
  ASSERT_TRUE(run_until([&] { return has(0, kSpare) && has(1, kSpare); })) << why();
  cut(0);
  ASSERT_TRUE(sends(1'000'000)) << why();
  EXPECT_GT(carried_[1], 100'000U);
  EXPECT_GT(carried_[kSpare], 100'000U);
}

TEST_F(TcpSocketCount, ASocketThatIsNotUsedTakesNothingOfTheLimitOfItsSite) {
  connect_two();
  ends_[0].link->limit_site_pace(1'000'000);
  const auto pace = [&] {
    std::uint64_t bytes_per_second = 0;
    socklen_t size = sizeof bytes_per_second;
    const std::lock_guard lock(ends_[0].domain->lock());
    EXPECT_EQ(getsockopt(ends_[0].link->descriptor(0), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, &size), 0);
    return bytes_per_second;
  };
  ASSERT_TRUE(run_until([&] { return pace() == 475'000; })) << "half of what is left for the content of packets";
  renew(kSpare);
  ASSERT_TRUE(run_until([&] { return has(0, kSpare) && has(1, kSpare); })) << why();
  ASSERT_TRUE(sends(1'000)) << why();
  EXPECT_EQ(pace(), 475'000U);
}

TEST_F(TcpSocketCount, APlaceThatIsGivenUpIsNotDialedUntilOneIsWantedAgain) {
  connect_two();
  ask_for(3);
  ASSERT_TRUE(run_until([&] { return wanted(1) == 3; })) << why();
  {
    const std::lock_guard lock(ends_[1].domain->lock());
    ends_[1].link->give_up_place(0);
    EXPECT_EQ(ends_[1].link->wanted_sockets(), 3U) << "it began with this one";
    ends_[1].link->give_up_place(kSpare);
    EXPECT_FALSE(ends_[1].link->wants_path(kSpare));
  }
  ask_for(4);
  ASSERT_TRUE(run_until([&] { return wanted(1) == 4; })) << why();
}

// Slow wires and a short round trip: the sockets are what is short.
TEST_F(TcpSocketCount, OneMoreIsOpenedAndTriedWhereFramesWait) {
  connect_two();
  std::size_t queued = 0;
  const auto feed_until = [&](const auto& condition) {
    return support::eventually([&] {
      if (ends_[1].frames.whole.size() + 100 > queued) {
        expected_.merge(queue(0, std::make_shared<Buffer>(4'000'000), 60'000));
        queued = expected_.size();
      }
      pump();
      for (std::size_t path = 0; path < paths_; ++path) {
        carry(path, 1, 1'000);
        carry(path, 0, 64 << 10);
      }
      return condition();
    });
  };
  ASSERT_TRUE(feed_until([&] { return wanted(0) == kOpened + 1; })) << why();
  EXPECT_GE(ends_[0].dialer->breaks, 1);
  ASSERT_TRUE(feed_until([&] { return wanted(1) == kOpened + 1; })) << why();
  renew(kSpare);
  ASSERT_TRUE(feed_until([&] { return carried_[kSpare] > 200'000; })) << why();
  ASSERT_TRUE(run_until([&] { return ends_[1].frames.whole == expected_; })) << why();
}

}  // namespace
}  // namespace seto::tcp
