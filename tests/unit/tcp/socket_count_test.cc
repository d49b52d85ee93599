// How many sockets carry the frames of a far link, as what they carry together changes.

#include "transports/tcp/flow/socket_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>

#include "tests/support/seed.h"

namespace seto::tcp {
namespace {

constexpr std::uint64_t kRoundTripNs = 60'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

// A link that is looked at once a round trip while frames wait. `rate`: what so many sockets carry together.
struct Model {
  Model(std::size_t first, std::size_t most, std::function<double(std::size_t)> rate_of)
      : count(first, most), rate(std::move(rate_of)) {}

  void look(bool waited = true) {
    now_ns += kRoundTripNs;
    std::uniform_real_distribution<double> spread(1 - noise, 1 + noise);
    SocketCount::Look seen;
    seen.bytes = static_cast<std::uint64_t>(rate(count.used()) * spread(random) * static_cast<double>(kRoundTripNs) * 1e-9);
    seen.passed_ns = kRoundTripNs;
    seen.waited = waited;
    seen.starved = waited && starved;
    seen.open = std::min(count.wanted(), can_open);
    seen.now_ns = now_ns;
    count.take(seen);
    most_used = std::max(most_used, count.used());
    least_used = std::min(least_used, count.used());
  }
  void seconds(std::uint64_t many) {
    for (const std::uint64_t end = now_ns + many * kSecond; now_ns < end;) look();
  }

  SocketCount count;
  std::function<double(std::size_t)> rate;
  double noise = 0;
  bool starved = false;
  std::size_t can_open = 16;
  std::size_t most_used = 0;
  std::size_t least_used = 16;
  std::uint64_t now_ns = kSecond;
  std::mt19937_64 random{1};
};

TEST(SocketCount, RisesAtOnceWhereSocketsAreShort) {
  Model model(8, 16, [](std::size_t sockets) { return 5e6 * static_cast<double>(sockets); });
  model.starved = true;
  model.seconds(4);
  EXPECT_GE(model.count.wanted(), 9U);
  model.seconds(60);
  EXPECT_GE(model.count.used(), 15U);
}

TEST(SocketCount, RisesOnlyAsLongAsOneMoreGives) {
  Model model(4, 16, [](std::size_t sockets) { return 5e6 * static_cast<double>(std::min<std::size_t>(sockets, 7)); });
  model.seconds(300);
  EXPECT_EQ(model.count.used(), 7U);
  EXPECT_LE(model.most_used, 8U);
}

TEST(SocketCount, ALinkThatIsFullIsRarelyDisturbed) {
  Model model(8, 16, [](std::size_t sockets) { return sockets < 8 ? 1e6 * static_cast<double>(sockets) : 1e8; });
  int with_another = 0;
  int looks = 0;
  for (const std::uint64_t end = model.now_ns + 600 * kSecond; model.now_ns < end; ++looks) {
    model.look();
    with_another += model.count.used() == 8 ? 0 : 1;
  }
  EXPECT_EQ(model.most_used, 9U);
  EXPECT_EQ(model.least_used, 7U);
  EXPECT_LT(with_another, looks / 40);
}

TEST(SocketCount, FallsWhereTheMarginalSocketGivesNothing) {
  Model model(8, 16, [](std::size_t sockets) { return 3e7 * static_cast<double>(std::min<std::size_t>(sockets, 3)); });
  model.seconds(900);
  EXPECT_EQ(model.count.used(), 3U);
  EXPECT_EQ(model.count.wanted(), 3U);
}

TEST(SocketCount, NeverFallsBelowTwo) {
  Model model(4, 8, [](std::size_t) { return 1e8; });
  model.seconds(900);
  EXPECT_EQ(model.count.used(), SocketCount::kLeast);
  EXPECT_GE(model.least_used, SocketCount::kLeast);
}

// Each step down would cost less than a twentieth.
TEST(SocketCount, StepsDownDoNotAddUp) {
  const auto rate = [](std::size_t sockets) {
    return 1e8 * (1 - 0.04 * static_cast<double>(8 - std::min<std::size_t>(sockets, 8)));
  };
  Model model(8, 16, rate);
  model.seconds(500);
  EXPECT_GE(SocketCount::kGain * rate(model.count.used()), rate(8));
  EXPECT_LT(model.count.used(), 8U);
}

TEST(SocketCount, FollowsALinkThatChanges) {
  double each = 5e6;
  Model model(8, 16, [&](std::size_t sockets) { return std::min(each * static_cast<double>(sockets), 8e7); });
  model.starved = true;
  model.seconds(120);
  EXPECT_GE(model.count.used(), 15U);
  each = 4e7;
  model.starved = false;
  model.seconds(3'000);
  EXPECT_LE(model.count.used(), 3U);
  each = 5e6;
  model.starved = true;
  model.seconds(3'000);
  EXPECT_GE(model.count.used(), 15U);
}

TEST(SocketCount, NoiseMovesItLittle) {
  std::mt19937_64 seeds(testing::chosen_seed());
  for (int run = 0; run < 20; ++run) {
    Model model(8, 16, [](std::size_t sockets) { return 1e7 * static_cast<double>(std::min<std::size_t>(sockets, 8)); });
    model.noise = 0.1;
    model.random.seed(seeds());
    model.seconds(600);
    EXPECT_GE(model.count.used(), 7U);
    EXPECT_LE(model.count.used(), 11U);
  }
}

TEST(SocketCount, GivesUpASocketThatCannotBeOpened) {
  Model model(8, 16, [](std::size_t sockets) { return 5e6 * static_cast<double>(sockets); });
  model.starved = true;
  model.can_open = 8;
  model.seconds(8);
  EXPECT_EQ(model.count.wanted(), 9U);
  model.seconds(10);
  EXPECT_EQ(model.count.wanted(), 8U);
  EXPECT_EQ(model.most_used, 8U);
}

TEST(SocketCount, ShortRunsOfOutputChangeNothing) {
  Model model(8, 16, [](std::size_t sockets) { return 5e6 * static_cast<double>(sockets); });
  model.starved = true;
  for (int i = 0; i < 20'000; ++i) model.look(i % 3 != 0);
  EXPECT_EQ(model.count.wanted(), 8U);
}

TEST(SocketCount, ATrialEndsWhereTheLinkWasIdleForLong) {
  Model model(8, 16, [](std::size_t sockets) { return 5e6 * static_cast<double>(sockets); });
  model.starved = true;
  while (model.count.used() == 8) model.look();
  model.now_ns += 2 * SocketCount::kOpenNs;
  for (int i = 0; i < 4; ++i) model.look();
  EXPECT_EQ(model.count.used(), 8U);
  EXPECT_EQ(model.count.wanted(), 8U);
}

TEST(SocketCount, KeepsWithinItsLimits) {
  Model model(2, 4, [](std::size_t sockets) { return 5e6 * static_cast<double>(sockets); });
  model.starved = true;
  model.seconds(600);
  EXPECT_EQ(model.most_used, 4U);
  EXPECT_GE(model.least_used, 2U);
}

}  // namespace
}  // namespace seto::tcp
