// Which looks at the kernel's figures count, and the rate that follows from them.

#include "transports/tcp/flow/rate_sampler.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace seto::tcp {
namespace {

constexpr std::uint32_t kRoundTripUs = 60'000;
constexpr std::uint64_t kMegabyte = 1'000'000;

// Looks at sockets that carry one rate together.
struct Looks {
  explicit Looks(std::size_t sockets) : sampler(sockets, kRoundTripUs), seen(sockets, TcpDelivery{}) {
    for (std::uint32_t i = 0; i < RateSampler::kLooksToBegin; ++i) look(kBegin);
  }

  bool look(double rate, bool app_limited = false, bool ran_dry = false, bool held_back = false) {
    move(rate);
    for (auto& one : seen) one->app_limited = app_limited;
    return sampler.take({seen, ran_dry, now_ns, held_back});
  }
  void move(double rate) {
    now_ns += kRoundTripUs * 1'000ULL;
    for (auto& one : seen) {
      one->segment_bytes = kSegment;
      one->segments += static_cast<std::uint32_t>(rate * kRoundTripUs * 1e-6 / kSegment / static_cast<double>(seen.size()));
      one->round_trip_us = kRoundTripUs;
    }
  }

  static constexpr double kBegin = 50e6;
  static constexpr std::uint32_t kSegment = 1'000;
  RateSampler sampler;
  std::vector<std::optional<TcpDelivery>> seen;
  std::uint64_t now_ns = 1'000'000'000;
};

TEST(RateSampler, KnowsARateAfterThreeSamples) {
  Looks looks(8);
  EXPECT_FALSE(looks.look(100e6));
  EXPECT_FALSE(looks.look(110e6));
  EXPECT_EQ(looks.sampler.rate(), 0);
  EXPECT_TRUE(looks.look(90e6));
  EXPECT_NEAR(looks.sampler.rate(), 100e6, 1e6);
  EXPECT_EQ(looks.sampler.round_trip_us(), kRoundTripUs);
}

TEST(RateSampler, ABrokenSocketCountsNothingAndTheNextOneBeginsAnew) {
  Looks looks(2);
  looks.look(100e6);
  looks.move(100e6);
  const std::vector<std::optional<TcpDelivery>> one{looks.seen[0], std::nullopt};
  (void)looks.sampler.take({one, false, looks.now_ns, false});
  EXPECT_NEAR(static_cast<double>(looks.sampler.latest_bytes()), 3e6, 1e4);
  looks.seen[1]->segments = 0;
  looks.sampler.replace(1);
  looks.look(100e6);
  EXPECT_NEAR(static_cast<double>(looks.sampler.latest_bytes()), 6e6, 1e4);
  const std::vector<std::optional<TcpDelivery>> none(2);
  (void)looks.sampler.take({none, false, looks.now_ns + 1, false});
  EXPECT_EQ(looks.sampler.latest_ns(), 0U) << "the kernel does not tell";
}

// Three of four sockets bring nothing. It matters whether they should.
TEST(RateSampler, ASocketThatNeedNotCarryAnythingIsNoReasonToDoubtTheOthers) {
  for (const std::size_t resting : {0U, 3U}) {
    Looks looks(4);
    for (int i = 0; i < 5; ++i) {
      looks.move(100e6);
      looks.seen[1].reset();
      looks.seen[2].reset();
      looks.seen[3].reset();
      (void)looks.sampler.take({looks.seen, false, looks.now_ns, false, resting});
      looks.seen = std::vector<std::optional<TcpDelivery>>(4, looks.seen[0]);
    }
    EXPECT_EQ(looks.sampler.rate() > 0, resting == 3);
  }
}

TEST(RateSampler, CountsWhatTheOwnLimitHeldBack) {
  Looks looks(2);
  for (int i = 0; i < 3; ++i) looks.look(100e6, true, false, true);
  EXPECT_NEAR(looks.sampler.rate(), 100e6, 1e6) << "the sockets were empty, and frames waited";
  for (int i = 0; i < 20; ++i) looks.look(5e6, true, true, true);
  EXPECT_NEAR(looks.sampler.rate(), 100e6, 1e6) << "for a part of the time no frame waited";
}

TEST(RateSampler, CountsOnlyWhatTheLinkLimited) {
  Looks looks(2);
  for (int i = 0; i < 3; ++i) looks.look(100e6);
  for (int i = 0; i < 20; ++i) looks.look(5e6, true);
  for (int i = 0; i < 20; ++i) looks.look(5e6, false, true);
  EXPECT_EQ(looks.sampler.samples(), 3U);
  EXPECT_NEAR(looks.sampler.rate(), 100e6, 1e6) << "the caller sent less, the link is as fast as before";
}

// Acknowledgements come in bunches: nothing for a round trip, and twice as much in the next one.
TEST(RateSampler, TellsWhatTheLinkCarriedAtLeast) {
  Looks looks(2);
  for (int i = 0; i < 10; ++i) looks.look(i % 2 == 0 ? 0 : 48e6, true, true);
  EXPECT_NEAR(looks.sampler.carried(), 24e6, 1e6);
  EXPECT_EQ(looks.sampler.rate(), 0) << "it was never full";
  for (std::size_t i = 0; i <= RateSampler::kCarriedKept; ++i) looks.look(5e6, true, true);
  EXPECT_NEAR(looks.sampler.carried(), 5e6, 1e6) << "of late";
}

TEST(RateSampler, ARunBeginsAgainAfterAPause) {
  Looks looks(2);
  looks.look(100e6);
  looks.look(5e6, true);
  for (std::uint32_t i = 0; i < RateSampler::kLooksToBegin; ++i) looks.look(7e6);  // what arrives was sent before
  EXPECT_EQ(looks.sampler.samples(), 1U);
  looks.now_ns += 1'000'000'000;  // idle
  for (std::uint32_t i = 0; i < RateSampler::kLooksToBegin; ++i) looks.look(7e6);
  EXPECT_EQ(looks.sampler.samples(), 1U);
  looks.look(100e6);
  EXPECT_EQ(looks.sampler.samples(), 2U);
}

TEST(RateSampler, HalfOfTheSocketsWithRoomMakeTheSampleVoid) {
  Looks looks(4);
  for (int i = 0; i < 5; ++i) {
    looks.move(100e6);
    for (std::size_t socket = 0; socket < 4; ++socket) looks.seen[socket]->app_limited = socket > 0;
    looks.sampler.take({looks.seen, false, looks.now_ns});
  }
  EXPECT_EQ(looks.sampler.samples(), 0U);
}

TEST(RateSampler, WaitsWhileTheSocketsStillFindOutWhatTheLinkCarries) {
  Looks looks(1);
  for (const double rate : {5e6, 10e6, 20e6, 40e6, 80e6}) EXPECT_FALSE(looks.look(rate)) << rate;
  EXPECT_EQ(looks.sampler.rate(), 0);
  for (int i = 0; i < 5; ++i) looks.look(118e6);
  EXPECT_NEAR(looks.sampler.rate(), 118e6, 1e6);
}

TEST(RateSampler, FollowsAChangeAfterThreeSamplesAndIgnoresTwoStrayOnes) {
  Looks looks(8);
  for (int i = 0; i < 5; ++i) looks.look(120e6);
  looks.look(20e6);
  looks.look(900e6);
  EXPECT_NEAR(looks.sampler.rate(), 120e6, 1e6);
  for (int i = 0; i < 5; ++i) looks.look(120e6);
  for (int i = 0; i < 3; ++i) looks.look(60e6);
  EXPECT_NEAR(looks.sampler.rate(), 60e6, 1e6);
}

TEST(RateSampler, CountersThatWrapAroundAreNoJump) {
  Looks looks(1);
  looks.seen[0]->segments = 0xffff'ff00U;
  looks.look(100e6, true);
  for (std::uint32_t i = 0; i < RateSampler::kLooksToBegin + 3; ++i) looks.look(100e6);
  EXPECT_NEAR(looks.sampler.rate(), 100e6, 1e6);
}

TEST(RateSampler, NonsenseIsNoSample) {
  Looks looks(1);
  for (const double nonsense : {0.0, 10.0}) looks.look(nonsense);
  looks.seen[0]->segment_bytes = 0xffff'ffffU;
  looks.seen[0]->segments += 0x7fff'ffffU;
  looks.sampler.take({looks.seen, false, looks.now_ns += kRoundTripUs * 1'000ULL});
  looks.sampler.take({looks.seen, false, looks.now_ns});
  looks.seen[0].reset();
  looks.sampler.take({looks.seen, false, looks.now_ns += kRoundTripUs * 1'000ULL});
  looks.sampler.take({{}, false, looks.now_ns});
  EXPECT_EQ(looks.sampler.samples(), 0U);
  EXPECT_EQ(looks.sampler.rate(), 0);
}

TEST(RateSampler, LooksOnceARoundTrip) {
  RateSampler far(1, kRoundTripUs);
  RateSampler nearer(1, 2'000);
  std::vector<std::optional<TcpDelivery>> seen{TcpDelivery{}};
  const std::uint64_t now = 1'000'000'000;
  EXPECT_TRUE(far.due(now));
  far.take({seen, false, now});
  nearer.take({seen, false, now});
  EXPECT_FALSE(far.due(now + 59'000'000));
  EXPECT_TRUE(far.due(now + 60'000'000));
  EXPECT_FALSE(nearer.due(now + 9'000'000));
  EXPECT_TRUE(nearer.due(now + 10'000'000));
}

}  // namespace
}  // namespace seto::tcp
