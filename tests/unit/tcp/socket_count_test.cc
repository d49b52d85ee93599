// How many sockets carry the frames of a far link, as what they carry together changes.

#include "transports/tcp/flow/socket_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "tests/support/seed.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kRoundTripNs = 60'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr double kMuch = 1e9;  // bytes a second

// A link that carries `capacity`, and each of its sockets `each` (bytes a second). It is looked at once a round trip while frames
// wait.
struct Model {
  Model(std::size_t first, std::size_t most, double its_capacity, double of_each)
      : count(first, most), capacity(its_capacity), each(of_each) {}
  [[nodiscard]] double rate(std::size_t sockets) const { return std::min(capacity, each * static_cast<double>(sockets)); }

  void look(bool waited = true) {
    now_ns += kRoundTripNs;
    std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
    SocketCount::Look seen;
    seen.bytes = static_cast<std::uint64_t>(rate(count.used()) * spread(random) * static_cast<double>(kRoundTripNs) * 1e-9);
    seen.passed_ns = kRoundTripNs;
    seen.waited = waited;
    seen.starved = waited && each * static_cast<double>(count.used()) < capacity;
    seen.open = can_open;
    seen.carrying = broken ? count.used() - 1 : count.used();
    seen.now_ns = now_ns;
    count.take(seen);
    most_used = std::max(most_used, count.used());
    least_used = std::min(least_used, count.used());
  }
  void seconds(std::uint64_t many) {
    for (const std::uint64_t end = now_ns + many * kSecond; now_ns < end;) look();
  }

  SocketCount count;
  double capacity;
  double each;
  double noise = 0;
  bool broken = false;
  std::size_t can_open = 16;
  std::size_t most_used = 0;
  std::size_t least_used = 16;
  std::uint64_t now_ns = kSecond;
  std::mt19937_64 random{1};
};

TEST(SocketCount, RisesAtOnceWhereSocketsAreShort) {
  Model model(8, 16, kMuch, 5e6);
  model.seconds(4);
  EXPECT_EQ(model.count.wanted(), 9U);
  model.seconds(60);
  EXPECT_GE(model.count.used(), 15U);
}

TEST(SocketCount, RisesOnlyAsLongAsOneMoreGives) {
  Model model(4, 16, 35e6, 5e6);
  model.seconds(300);
  EXPECT_EQ(model.count.used(), 7U);
  EXPECT_LE(model.most_used, 8U);
}

// One more would take from others.
TEST(SocketCount, DoesNotRiseWhereTheNetworkIsFull) {
  Model model(8, 16, 4e7, 1e7);
  model.seconds(600);
  EXPECT_EQ(model.most_used, 8U);
}

TEST(SocketCount, OneMoreThatGivesNothingIsRarelyTried) {
  Model model(8, 16, kMuch, 1e7);
  int with_another = 0;
  int looks = 0;
  for (const std::uint64_t end = model.now_ns + 1'200 * kSecond; model.now_ns < end; ++looks) {
    model.each = 8e7 / static_cast<double>(model.count.used());  // something else is short
    model.look();
    with_another += model.count.used() == 8 ? 0 : 1;
  }
  EXPECT_EQ(model.most_used, 9U);
  EXPECT_EQ(model.count.used(), 8U);
  EXPECT_LT(with_another, looks / 50);
}

TEST(SocketCount, FallsWhereTheMarginalSocketGivesNothing) {
  Model model(8, 16, 9e7, 3e7);
  model.seconds(900);
  EXPECT_EQ(model.count.used(), 3U);
  EXPECT_EQ(model.count.wanted(), 3U);
}

TEST(SocketCount, NeverFallsBelowTwo) {
  Model model(4, 8, 1e8, 1e8);
  model.seconds(900);
  EXPECT_EQ(model.count.used(), SocketCount::kLeast);
  EXPECT_GE(model.least_used, SocketCount::kLeast);
}

// Each step down alone costs less than a twentieth.
TEST(SocketCount, StepsDownDoNotAddUp) {
  Model model(8, 16, 1e8, kMuch);
  const auto rate = [](std::size_t sockets) { return 1e8 * (1 - 0.04 * static_cast<double>(8 - sockets)); };
  for (const std::uint64_t end = model.now_ns + 500 * kSecond; model.now_ns < end;) {
    model.capacity = rate(model.count.used());
    model.look();
  }
  EXPECT_EQ(model.count.used(), 7U);
}

// Other traffic fills the link, or a provider slows each socket down, and then no more.
TEST(SocketCount, FollowsALinkThatChanges) {
  Model model(8, 16, 1e8, 2e7);
  model.seconds(1'200);
  EXPECT_EQ(model.count.used(), 5U);
  model.capacity = 2e7;
  model.seconds(3'000);
  EXPECT_EQ(model.count.used(), SocketCount::kLeast);
  model.capacity = 1e8;
  model.seconds(60);
  EXPECT_EQ(model.count.used(), 5U);
  model.each = 6e6;
  model.seconds(120);
  EXPECT_GE(model.count.used(), 15U);
}

TEST(SocketCount, NoiseMovesItLittle) {
  std::mt19937_64 seeds(testing::chosen_seed());
  for (int run = 0; run < 20; ++run) {
    Model model(8, 16, 8e7, 1e7);
    model.noise = 0.1;
    model.random.seed(seeds());
    model.seconds(600);
    EXPECT_GE(model.count.used(), 7U);
    EXPECT_LE(model.count.used(), 11U);
  }
}

TEST(SocketCount, GivesUpASocketThatCannotBeOpened) {
  Model model(8, 16, kMuch, 5e6);
  model.can_open = 8;
  model.seconds(8);
  EXPECT_EQ(model.count.wanted(), 9U);
  model.seconds(10);
  EXPECT_EQ(model.count.wanted(), 8U);
  EXPECT_EQ(model.most_used, 8U);
}

TEST(SocketCount, ShortRunsOfOutputChangeNothing) {
  Model model(8, 16, kMuch, 5e6);
  for (int i = 0; i < 20'000; ++i) model.look(i % 3 != 0);
  EXPECT_EQ(model.count.wanted(), 8U);
}

TEST(SocketCount, ATrialEndsWhereTheLinkWasIdleForLong) {
  for (const bool opening : {false, true}) {
    Model model(8, 16, kMuch, 5e6);
    if (opening) model.can_open = 8;
    for (int i = 0; i < 1'000 && model.count.wanted() == 8; ++i) model.look();
    if (!opening) model.look();
    ASSERT_EQ(model.count.used(), opening ? 8U : 9U);
    model.now_ns += 2 * SocketCount::kIdleNs;
    for (int i = 0; i < 4; ++i) model.look();
    EXPECT_EQ(model.count.used(), 8U);
    EXPECT_EQ(model.count.wanted(), 8U);
    model.can_open = 16;
    model.seconds(20);
    EXPECT_GE(model.count.used(), 9U) << "it says nothing of the socket";
  }
}

TEST(SocketCount, NothingIsMeasuredWhileASocketIsMissing) {
  Model model(8, 16, kMuch, 5e6);
  model.broken = true;
  model.seconds(60);
  EXPECT_EQ(model.count.wanted(), 8U);
  model.broken = false;
  model.seconds(4);
  EXPECT_EQ(model.count.wanted(), 9U);
}

TEST(SocketCount, KeepsWithinItsLimits) {
  Model model(2, 4, kMuch, 5e6);
  model.seconds(600);
  EXPECT_EQ(model.most_used, 4U);
  EXPECT_GE(model.least_used, 2U);
}

}  // namespace
}  // namespace seto::tcp
