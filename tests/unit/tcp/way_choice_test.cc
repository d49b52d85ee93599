// Which way long payloads of a link take, as what its rails and its sockets carry changes.

#include "transports/tcp/flow/way_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>

#include "tests/support/seed.h"

namespace seto::tcp {
namespace {

using Way = WayChoice::Way;

constexpr std::uint64_t kFrame = 64 << 10;
constexpr std::uint64_t kSecond = 1'000'000'000;

// A sender whose frames wait at each way for their turn. A way carries `rate` bytes a second and holds `room` bytes, beyond which
// the sender waits. The peer tells what it has heard after `told` bytes.
struct Model {
  Model(double of_rails, double of_sockets) : rate{of_rails, of_sockets} { choice.look(1, true, now_ns); }

  // One long frame. Returns the way that it took.
  Way send() {
    choice.look(rails, sockets_work, now_ns);
    const Way way = choice.next();
    const auto at = static_cast<std::size_t>(way);
    while (under_way(way) + kFrame > room) hear_next();
    ++number;
    choice.sent(way, number, kFrame, now_ns);
    busy_ns[at] = std::max(busy_ns[at], now_ns) + static_cast<std::uint64_t>(static_cast<double>(kFrame) * 1e9 / rate[at]);
    frames.push_back({number, way, busy_ns[at] + pause()});
    bytes[at] += kFrame;
    return way;
  }
  // The peer does something else for a while, a few times.
  std::uint64_t pause() {
    if (pauses == 0 || number % 50 != 0) return 0;
    --pauses;
    return 5'000'000;
  }
  void send_many(std::uint64_t many) {
    for (std::uint64_t sent = 0; sent < many; sent += kFrame) send();
  }
  void send_until_result() {
    for (const int before = results; results == before;) send();
  }
  // Time passes, and all that is under way is heard.
  void idle(std::uint64_t time_ns) {
    while (!frames.empty()) hear_next();
    now_ns += time_ns;
  }

  [[nodiscard]] std::uint64_t under_way(Way way) const {
    return kFrame * static_cast<std::uint64_t>(
                        std::count_if(frames.begin(), frames.end(), [&](const Sent& one) { return one.way == way; }));
  }
  // The peer tells up to which number all has come, once that is enough.
  void hear_next() {
    std::uint64_t last = 0;
    for (bool enough = false; !enough && !frames.empty();) {
      now_ns = std::max(now_ns, frames.front().there_ns);
      for (; !frames.empty() && frames.front().there_ns <= now_ns; frames.pop_front(), untold += kFrame)
        last = frames.front().number;
      enough = untold >= told;
    }
    untold = 0;
    if (choice.acknowledged(last, now_ns)) ++results;
  }

  struct Sent {
    std::uint64_t number;
    Way way;
    std::uint64_t there_ns;
  };
  WayChoice choice;
  double rate[2];
  std::size_t rails = 1;
  bool sockets_work = true;
  std::uint64_t room = 4 << 20, told = 256 << 10, untold = 0, pauses = 0;
  std::uint64_t now_ns = kSecond, number = 0;
  std::uint64_t busy_ns[2] = {}, bytes[2] = {};
  std::deque<Sent> frames;
  int results = 0;
  std::mt19937_64 random{testing::chosen_seed()};
};

TEST(WayChoice, BeginsWithRailsAndTakesFasterSockets) {
  Model model(1e8, 5e8);
  EXPECT_EQ(model.send(), Way::rails);
  model.send_until_result();
  EXPECT_EQ(model.choice.chosen(), Way::sockets);
  EXPECT_GT(model.choice.rate(Way::sockets), 2 * model.choice.rate(Way::rails));
  const std::uint64_t before = model.bytes[0];
  model.send_many(100 << 20);
  EXPECT_EQ(model.bytes[0], before) << "nothing more goes over rails";
  EXPECT_TRUE(model.choice.uses_sockets());
}

TEST(WayChoice, StaysWithFasterRailsAndWithEqualOnes) {
  for (const double sockets : {1e8, 5e8, 6e8}) {
    Model model(5e8, sockets);
    model.send_until_result();
    EXPECT_EQ(model.choice.chosen(), Way::rails) << sockets;
    EXPECT_NEAR(model.choice.rate(Way::sockets), sockets, 0.1 * sockets);
    const std::uint64_t before = model.bytes[1];
    model.send_many(100 << 20);
    EXPECT_EQ(model.bytes[1], before);
    model.idle(1);
    EXPECT_FALSE(model.choice.uses_sockets());
  }
}

// The peer may do something else meanwhile, which only makes samples slower: the best one counts.
TEST(WayChoice, IsNotMisledByPauses) {
  for (const double sockets : {1e8, 2e9}) {
    Model model(5e8, sockets);
    model.pauses = 2;
    model.send_until_result();
    EXPECT_EQ(model.choice.chosen(), sockets > 5e8 ? Way::sockets : Way::rails);
  }
}

// A call is short, and then there is none for long. Only the time counts in which something is under way.
TEST(WayChoice, MeasuresShortCalls) {
  for (const double sockets : {1e8, 3e9}) {
    Model model(5e8, sockets);
    for (int call = 0; model.results == 0 && call < 10'000; ++call) {
      for (int frame = 0; frame < 4; ++frame) model.send();
      model.idle(7'000'000 + model.random() % 1'000'000);
    }
    ASSERT_EQ(model.results, 1);
    EXPECT_EQ(model.choice.chosen(), sockets > 5e8 ? Way::sockets : Way::rails);
    EXPECT_NEAR(model.choice.rate(Way::rails), 5e8, 2e8);
  }
}

TEST(WayChoice, TriesAgainAndFollowsAChange) {
  Model model(1e8, 5e8);
  model.send_until_result();
  ASSERT_EQ(model.choice.chosen(), Way::sockets);
  model.rate[0] = 2e9;
  model.idle(WayChoice::kFirstPauseNs / 2);
  model.send_many(50 << 20);
  EXPECT_EQ(model.results, 1) << "not yet";
  model.idle(WayChoice::kFirstPauseNs);
  model.send_until_result();
  EXPECT_EQ(model.choice.chosen(), Way::rails);
}

// Trials are rare where nothing changes, and a much slower way gets little.
TEST(WayChoice, CostsLittleWhereNothingChanges) {
  Model model(5e6, 1e9);
  model.room = 512 << 10;
  model.send_until_result();
  ASSERT_EQ(model.choice.chosen(), Way::sockets);
  const std::uint64_t first = model.bytes[0];
  EXPECT_LE(first, WayChoice::kSample + 4 * model.room) << "the first sample is whole, the others end early";
  const std::uint64_t begin = model.now_ns;
  while (model.now_ns < begin + 1'000 * kSecond) {
    for (int frame = 0; frame < 100; ++frame) model.send();
    model.idle(100'000'000);
  }
  EXPECT_GE(model.results, 4);
  EXPECT_LE(model.results, 7) << "after 30 s, 60 s, 120 s, ...";
  EXPECT_EQ(model.choice.chosen(), Way::sockets);
}

// Rates that are nearly equal, with noise: it changes rarely, and never back and forth.
TEST(WayChoice, DoesNotFlap) {
  Model model(5e8, 5.5e8);
  int changes = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const Way before = model.choice.chosen();
    model.pauses = 1;
    model.rate[1] = 4.6e8 + static_cast<double>(model.random() % 100'000'000);
    model.send_until_result();
    changes += model.choice.chosen() != before ? 1 : 0;
    model.idle(WayChoice::kLongestPauseNs);
  }
  EXPECT_EQ(changes, 0);
}

// A rail that breaks in a trial ends it; data goes over what works. The next trial comes when both work again.
TEST(WayChoice, FollowsWhatWorks) {
  Model model(1e8, 5e8);
  model.send_many(3 << 20);
  ASSERT_TRUE(model.choice.is_trying());
  model.rails = 0;
  EXPECT_EQ(model.send(), Way::rails) << "there is nothing to choose";
  EXPECT_FALSE(model.choice.is_trying());
  EXPECT_FALSE(model.choice.uses_sockets());
  model.rails = 1;
  model.send_until_result();
  EXPECT_EQ(model.choice.chosen(), Way::sockets);
  model.sockets_work = false;
  EXPECT_EQ(model.send(), Way::rails);
  model.sockets_work = true;
  EXPECT_EQ(model.send(), Way::sockets) << "as it was measured";
  model.rails = 0;
  model.send();
  EXPECT_FALSE(model.choice.uses_sockets()) << "they are all that there is";
}

TEST(WayChoice, MeasuresMoreRailsAnew) {
  Model model(1e8, 5e8);
  model.send_until_result();
  model.idle(2 * WayChoice::kLeastPauseNs);
  model.send_many(50 << 20);
  ASSERT_FALSE(model.choice.is_trying());
  model.rails = 2;
  model.rate[0] = 2e9;
  const std::uint64_t before = model.now_ns;
  model.send_until_result();
  EXPECT_EQ(model.choice.chosen(), Way::rails);
  EXPECT_LT(model.now_ns - before, kSecond) << "at once";
}

// Nothing of a sample is acknowledged any more: its time passes nevertheless, and payloads go over the other way.
TEST(WayChoice, LeavesAWayThatStandsStill) {
  Model model(5e8, 1e8);
  while (model.send() == Way::rails) {
  }
  while (model.under_way(Way::rails) > 0) model.hear_next();
  model.send();
  ASSERT_EQ(model.choice.next(), Way::sockets);
  model.now_ns += kSecond;
  EXPECT_EQ(model.send(), Way::rails);
}

// Rails that come and go do not cause a trial each time.
TEST(WayChoice, TriesSeldomWhereRailsComeAndGo) {
  Model model(1e8, 5e8);
  const std::uint64_t begin = model.now_ns;
  for (int breaks = 0; breaks < 300; ++breaks) {
    model.rails = 1 + model.rails % 2;
    model.send_many(100 << 20);
  }
  EXPECT_LE(static_cast<std::uint64_t>(model.results), 2 + (model.now_ns - begin) / WayChoice::kLeastPauseNs);
}

// A socket that still holds payloads is in use, though the next ones go over rails.
TEST(WayChoice, UsesSocketsUntilTheyAreHeard) {
  Model model(1e8, 5e8);
  model.send_until_result();
  ASSERT_EQ(model.choice.chosen(), Way::sockets);
  model.rate[0] = 2e9;
  model.idle(2 * WayChoice::kFirstPauseNs);
  while (model.send() == Way::sockets) {
  }
  while (model.under_way(Way::sockets) > 0) {
    EXPECT_TRUE(model.choice.uses_sockets());
    model.hear_next();
  }
  model.send_until_result();
  model.idle(1);
  EXPECT_EQ(model.choice.next(), Way::rails);
  EXPECT_FALSE(model.choice.uses_sockets());
}

// More payloads under way than a trial can follow.
TEST(WayChoice, GivesUpATrialThatItCannotFollow) {
  Model model(1e8, 5e8);
  model.room = ~std::uint64_t{0} / 2;
  for (int frame = 0; frame < 5'000; ++frame) model.send();
  EXPECT_FALSE(model.choice.is_trying());
  model.room = 4 << 20;
  model.idle(2 * kSecond);
  model.send_until_result();
  EXPECT_EQ(model.choice.chosen(), Way::sockets);
}

}  // namespace
}  // namespace seto::tcp
