#include "src/core/communicator/link_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "src/base/log.h"
#include "tests/support/seed.h"

namespace seto {
namespace {

// A link with a clock of its own.
struct ModelLink {
  double round_trip_seconds = 0;
  double bytes_per_second = 0;
  double message_seconds = 0;  // at the slower end
  double now = 1000;
  double longest = 0;  // exchange
  int exchanges = 0;
  std::uint64_t bytes = 0;

  ProbeActions actions() {
    return {[this](std::uint64_t sent) {
              const double took = round_trip_seconds + static_cast<double>(sent) / bytes_per_second;
              longest = std::max(longest, took);
              now += took;
              bytes += sent;
              ++exchanges;
              return Status();
            },
            [this](int messages) {
              const double took = round_trip_seconds + (messages - 1) * message_seconds;
              longest = std::max(longest, took);
              now += took;
              return Status();
            },
            [this] { return now; },
            {}};
  }
};

TEST(LinkProbe, FindsTheCostOfANearLink) {
  ModelLink link{20e-6, 3e9};
  const TierCost cost = probe_link(link.actions(), TierKind::site).value();
  EXPECT_NEAR(cost.latency_seconds, 10e-6, 1e-9);
  EXPECT_NEAR(cost.bytes_per_second, 3e9, 3e7);
}

TEST(LinkProbe, AMessageCostsWhatABurstTakesLonger) {
  ModelLink link{20e-6, 3e9, 3e-6};
  EXPECT_NEAR(probe_link(link.actions(), TierKind::site).value().message_seconds, 3e-6, 1e-9);
  link.message_seconds = 0;
  EXPECT_NEAR(probe_link(link.actions(), TierKind::site).value().message_seconds, 0, 1e-9);
}

// A sender that waits until the receiver has taken earlier messages measures the receiver's scheduler.
TEST(LinkProbe, AMessageWithinANodeDoesNotWaitForEarlierOnes) {
  ModelLink link{0.6e-6, 10e9, 0.1e-6};
  ProbeActions actions = link.actions();
  int longest = 0;
  actions.burst = [&, burst = actions.burst](int messages) {
    longest = std::max(longest, messages);
    if (messages > kProbeBurstOfANode) link.now += 100e-6;
    return burst(messages);
  };
  EXPECT_NEAR(probe_link(actions, TierKind::node).value().message_seconds, 0.1e-6, 1e-10);
  EXPECT_EQ(longest, kProbeBurstOfANode);
}

TEST(LinkProbe, PassesOverTheCacheAreMeasuredOnANodeOnly) {
  ModelLink link{0.6e-6, 10e9, 0.1e-6};
  ProbeActions actions = link.actions();
  actions.pass = [&](std::uint64_t bytes) { link.now += static_cast<double>(bytes) / (bytes > 1 << 20 ? 50e9 : 200e9); };
  const TierCost node = probe_link(actions, TierKind::node).value();
  EXPECT_NEAR(node.cached_bytes_per_second, 200e9, 1e6);
  EXPECT_DOUBLE_EQ(node.cached_bytes, 1 << 20);
  EXPECT_EQ(probe_link(actions, TierKind::site).value().cached_bytes_per_second, 0);
  ModelLink busy{4e-3, 10e9};
  EXPECT_EQ(probe_link(busy.actions(), TierKind::node).value(), CostModel().node) << "the cache of a busy machine as well";
}

TEST(LinkProbe, AMessageIsLongWhereItsBytesCostMoreThanHalfItsHop) {
  ModelLink link{2.4e-6, 50e9, 0.1e-6};
  EXPECT_NEAR(probe_link(link.actions(), TierKind::node).value().long_message_bytes, 30e3, 100);
  link.bytes_per_second /= 2;
  EXPECT_NEAR(probe_link(link.actions(), TierKind::node).value().long_message_bytes, 15e3, 100);
  ModelLink busy{4e-3, 10e9};
  EXPECT_EQ(probe_link(busy.actions(), TierKind::node).value().long_message_bytes, 16 << 10) << "shipped";
}

// A latency contains a send and a receive, so none of them takes longer than its half.
TEST(LinkProbe, AMessageCostsHalfALatencyAtMost) {
  ModelLink link{20e-6, 3e9, 50e-6};
  const TierCost cost = probe_link(link.actions(), TierKind::site).value();
  EXPECT_DOUBLE_EQ(cost.message_seconds, cost.latency_seconds / 2);
}

TEST(LinkProbe, SendsOneShortMessageOverAFarLink) {
  ModelLink link{60e-3, 125e6};
  const TierCost cost = probe_link(link.actions(), TierKind::world).value();
  EXPECT_EQ(link.exchanges, 1) << "20 exchanges took 1.2 s";
  EXPECT_EQ(link.bytes, 0U) << "the first bytes would wait for the congestion window";
  EXPECT_NEAR(cost.latency_seconds, 30e-3, 1e-9);
  EXPECT_EQ(cost.bytes_per_second, kAssumedBytesPerSecond);
  EXPECT_EQ(cost.message_seconds, CostModel().world.message_seconds);
}

TEST(LinkProbe, ALinkThatIsKnownToBeNearIsMeasuredOnABusyMachineToo) {
  ModelLink link{2e-3, 500e6};
  const TierCost cost = probe_link(link.actions(), TierKind::world, true).value();
  EXPECT_NEAR(cost.bytes_per_second, 500e6, 50e6) << "not assumed";
}

TEST(LinkProbe, TakesItsBudgetAndOneExchangeAtMost) {
  std::mt19937_64 random(testing::chosen_seed());
  const auto power = [&](double low, double high) {
    return std::pow(10, std::uniform_real_distribution<double>(low, high)(random));
  };
  for (int run = 0; run < 2000; ++run)
    for (const TierKind tier : {TierKind::node, TierKind::site, TierKind::world}) {
      ModelLink link{power(-7, 0), power(6, 11), power(-8, -4)};
      const double start = link.now;
      const TierCost cost = probe_link(link.actions(), tier).value();
      EXPECT_LE(link.now - start, kProbeSeconds + link.longest + 1e-6)
          << link.round_trip_seconds << " s, " << link.bytes_per_second << " bytes/s, " << link.exchanges << " exchanges";
      EXPECT_GT(cost.latency_seconds, 0);
      EXPECT_GT(cost.bytes_per_second, 0);
      EXPECT_GE(cost.message_seconds, 0);
    }
}

// Fractions of the machine's time, as a probe among busy programs sees them: a hop of 2 ms, of 266 us, a copy without a core.
TEST(LinkProbe, ABusyNodeKeepsTheShippedConstantsAndSaysSo) {
  set_log_level(LogLevel::info);
  for (const ModelLink& busy : {ModelLink{4e-3, 10e9}, ModelLink{2 * 266e-6, 10e9}, ModelLink{2e-6, 20e6}}) {
    LogCapture log;
    ModelLink link = busy;
    EXPECT_EQ(probe_link(link.actions(), TierKind::node).value(), CostModel().node);
    EXPECT_TRUE(log.contains("so the shipped constants stay (0.25 us, 15 GB/s)")) << busy.round_trip_seconds;
  }
  set_log_level(LogLevel::warn);
}

TEST(LinkProbe, ASlowNodeIsBelieved) {
  set_log_level(LogLevel::info);
  LogCapture log;
  ModelLink link{50e-6, 100e6};  // over the loopback device, with more ranks than cores
  const TierCost cost = probe_link(link.actions(), TierKind::node).value();
  EXPECT_NEAR(cost.latency_seconds, 25e-6, 1e-9);
  EXPECT_NEAR(cost.bytes_per_second, 100e6, 1e6);
  EXPECT_TRUE(log.lines().empty());
  set_log_level(LogLevel::warn);
}

// A slow network exists, a slow memory does not.
TEST(LinkProbe, ASlowNetworkIsBelieved) {
  ModelLink link{900e-6, 1e6};
  const TierCost cost = probe_link(link.actions(), TierKind::site).value();
  EXPECT_NEAR(cost.latency_seconds, 450e-6, 1e-9);
  EXPECT_NEAR(cost.bytes_per_second, 1e6, 1e5);
}

}  // namespace
}  // namespace seto
