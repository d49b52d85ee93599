#include "src/core/choice/estimate.h"

#include <gtest/gtest.h>

namespace seto {
namespace {

constexpr double kBytes = 1 << 20;

CostModel model() {
  CostModel costs;
  costs.node = {1e-6, 10e9};
  costs.site = {10e-6, 1e9};
  costs.switch_seconds = 5e-6;
  costs.codec_bytes_per_second = 2e9;
  return costs;
}

PlanLoad load_of(int tiers, const TierLoad& widest, double memory) {
  PlanLoad load;
  load.tiers[static_cast<std::size_t>(tiers - 1)] = widest;
  load.rank.memory = memory;
  return load;
}

TEST(Estimate, BytesWithinANodePassThroughMemoryAndNoWire) {
  const PlanLoad load = load_of(1, {.hops = 2, .wire = 100}, 4);
  const Estimate estimate = estimate_of(load, Tiers::flat(4), {.part_bytes = kBytes}, model());
  EXPECT_EQ(estimate.tiers[0].wire_seconds, 0);
  EXPECT_DOUBLE_EQ(estimate.memory_seconds, 4 * kBytes / 20e9);
  EXPECT_DOUBLE_EQ(estimate.seconds, 2e-6 + estimate.memory_seconds);
}

// Half of the passes are over slots: two copies out of slots, as long as all is cached.
TEST(Estimate, WithinANodePassesOverSlotsTakeWhatCachedOnesLeaveOfACopy) {
  CostModel costs = model();
  costs.node.cached_bytes_per_second = 100e9;
  costs.node.cached_bytes = 8 * kBytes;
  PlanLoad load = load_of(1, {}, 8);
  load.rank.sent = 1;
  load.rank.received = 3;
  const auto seconds = [&](const Tiers& tiers, double bytes) {
    return estimate_of(load, tiers, {.part_bytes = bytes}, costs).memory_seconds;
  };
  const double of_cached = 1 / 100e9;
  const double of_a_copy = 1 / 10e9;
  EXPECT_DOUBLE_EQ(seconds(Tiers::flat(4), kBytes), 4 * kBytes * of_a_copy);
  load.rank.sent = load.rank.received = 0;
  EXPECT_DOUBLE_EQ(seconds(Tiers::flat(4), kBytes), 8 * kBytes * of_cached) << "a copy that needs no other rank";
  EXPECT_DOUBLE_EQ(seconds(Tiers::flat(4), 2 * kBytes), 8 * kBytes * of_cached + 8 * kBytes * of_a_copy / 2) << "half is cached";
  EXPECT_DOUBLE_EQ(seconds(made_up_tiers(4, 4, 1).value(), kBytes), 8 * kBytes * of_cached) << "sockets have copied the messages";
  EXPECT_DOUBLE_EQ(seconds(made_up_tiers(4, 2, 1).value(), kBytes), 8 * kBytes * of_a_copy / 2) << "with two tiers as before";
}

// No size may be faster than a shorter one, and no step of the size may make a call much longer.
TEST(Estimate, TimeGrowsSteadilyWhereTheCacheEnds) {
  CostModel costs = model();
  costs.node.cached_bytes_per_second = 300e9;
  costs.node.cached_bytes = kBytes;
  PlanLoad load = load_of(1, {.hops = 1}, 5);
  load.rank.sent = load.rank.received = 1;
  double before = 0;
  for (double bytes = 64; bytes < 64 * kBytes; bytes *= 1.05) {
    const double seconds = estimate_of(load, Tiers::flat(2), {.part_bytes = bytes}, costs).seconds;
    EXPECT_GT(seconds, before) << bytes;
    EXPECT_LT(seconds, before == 0 ? 1 : 1.2 * before) << bytes;
    before = seconds;
  }
}

TEST(Estimate, AMeasuredHopWithinANodeContainsTheSwitch) {
  CostModel costs = model();
  const PlanLoad load = load_of(1, {.hops = 2}, 0);
  const auto seconds = [&](const Tiers& tiers) {
    return estimate_of(load, tiers, {.part_bytes = kBytes, .crowding = 2}, costs).seconds;
  };
  costs.source = CostSource::measured;
  EXPECT_DOUBLE_EQ(seconds(Tiers::flat(4)), 2 * 1e-6);
  EXPECT_DOUBLE_EQ(seconds(made_up_tiers(4, 4, 1).value()), 2 * (10e-6 + 5e-6));
  costs.node = CostModel().node;
  EXPECT_DOUBLE_EQ(seconds(Tiers::flat(4)), 2 * (costs.node.latency_seconds + 5e-6)) << "the measurement was not believed";
}

TEST(Estimate, ACodecShortensWhatIsReadOutOfSlots) {
  const PlanLoad load = load_of(1, {.wire = 2, .coded = 1}, 4);
  const Estimate estimate =
      estimate_of(load, Tiers::flat(4), {.part_bytes = kBytes, .coded_tiers = 1, .wire_share = 0.5}, model());
  EXPECT_DOUBLE_EQ(estimate.memory_seconds, (4 - 1) * kBytes / 20e9 + kBytes / 2e9);
}

TEST(Estimate, SlicesLetWireAndMemoryOverlap) {
  const Tiers hosts = made_up_tiers(4, 4, 1).value();
  const PlanLoad load = load_of(1, {.hops = 1, .wire = 2}, 8);
  const double wire = 2 * kBytes / 1e9;
  const double memory = 8 * kBytes / 20e9;
  const auto seconds = [&](double slices) {
    return estimate_of(load, hosts, {.part_bytes = kBytes, .slices = slices}, model()).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(1), 10e-6 + wire + memory);
  EXPECT_DOUBLE_EQ(seconds(4), 10e-6 + wire + memory / 4);
}

TEST(Estimate, OneSliceTakesTheTimeOfEveryRankThatHandsItOn) {
  PlanLoad load = load_of(1, {.hops = 3, .relays = 3, .wire = 1}, 2);
  load.rank.path = 6;
  const double memory = 2 * kBytes / 20e9;
  const auto seconds = [&](double slices) {
    return estimate_of(load, Tiers::flat(4), {.part_bytes = kBytes, .slices = slices}, model()).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(1), 3e-6 + 3 * memory);
  EXPECT_DOUBLE_EQ(seconds(8), 3e-6 + 3 * memory / 8 + memory * 7 / 8);
}

TEST(Estimate, RanksThatShareACoreSwitchAtEveryHopAndShareItsMemoryRate) {
  const PlanLoad load = load_of(1, {.hops = 2}, 4);
  const Estimate estimate = estimate_of(load, Tiers::flat(4), {.part_bytes = kBytes, .crowding = 2}, model());
  EXPECT_DOUBLE_EQ(estimate.tiers[0].latency_seconds, 2 * (1e-6 + 5e-6));
  EXPECT_DOUBLE_EQ(estimate.memory_seconds, 2 * 4 * kBytes / 20e9);
  const PlanLoad sent = load_of(1, {.wire = 1}, 0);
  const Tiers hosts = made_up_tiers(4, 4, 1).value();
  EXPECT_DOUBLE_EQ(estimate_of(sent, hosts, {.part_bytes = kBytes, .crowding = 2}, model()).tiers[0].wire_seconds,
                   2 * kBytes / 1e9);
}

// A hop contains a send and a receive. What a rank sends and receives beyond that takes its core one after another.
TEST(Estimate, MessagesBeyondThoseOfTheHopsTakeTheCore) {
  const Tiers hosts = made_up_tiers(4, 4, 1).value();
  CostModel costs = model();
  costs.site.message_seconds = 3e-6;
  const auto estimate = [&](double hops, double messages, double crowding) {
    Workload work{.part_bytes = 0};
    work.crowding = crowding;
    return estimate_of(load_of(1, {.hops = hops, .messages = messages}, 0), hosts, work, costs);
  };
  EXPECT_DOUBLE_EQ(estimate(1, 2, 1).seconds, 10e-6);
  EXPECT_DOUBLE_EQ(estimate(1, 6, 1).seconds, 10e-6 + 4 * 3e-6);
  EXPECT_DOUBLE_EQ(estimate(6, 6, 1).seconds, 6 * 10e-6) << "a chain pays them as latency";
  EXPECT_DOUBLE_EQ(estimate(1, 6, 2).seconds, 15e-6 + (2 * 6 - 2) * 3e-6) << "two ranks of a core take turns";
  EXPECT_DOUBLE_EQ(estimate(1, 6, 2).tiers[0].message_seconds, 10 * 3e-6);
  EXPECT_DOUBLE_EQ(estimate(1, 6, 2).tiers[0].messages, 6);
}

// A root that sends to all has its core for itself while the others wait.
TEST(Estimate, RanksWithLessToDoLeaveTheCoreToTheBusiestOne) {
  const Tiers hosts = made_up_tiers(4, 4, 1).value();
  CostModel costs = model();
  costs.site.message_seconds = 3e-6;
  const auto seconds = [&](double average) {
    const PlanLoad load = load_of(1, {.hops = 1, .wire = 1, .messages = 6, .average = average}, 0);
    return estimate_of(load, hosts, {.part_bytes = kBytes, .crowding = 2}, costs).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(1), 15e-6 + (2 * 6 - 2) * 3e-6 + 2 * kBytes / 1e9);
  EXPECT_DOUBLE_EQ(seconds(0.75), 15e-6 + (1.5 * 6 - 2) * 3e-6 + 1.5 * kBytes / 1e9);
  EXPECT_DOUBLE_EQ(seconds(0.25), 15e-6 + (6 - 2) * 3e-6 + kBytes / 1e9) << "not less than the busiest rank alone";
}

TEST(Estimate, EverySliceHasItsMessages) {
  const Tiers hosts = made_up_tiers(4, 4, 1).value();
  CostModel costs = model();
  costs.site.message_seconds = 3e-6;
  const PlanLoad load = load_of(1, {.hops = 1, .messages = 6}, 0);
  const Estimate estimate = estimate_of(load, hosts, {.part_bytes = 0, .slices = 4}, costs);
  EXPECT_DOUBLE_EQ(estimate.seconds, 10e-6 + 4 * 3e-6 + 3 * 6 * 3e-6);
  EXPECT_DOUBLE_EQ(estimate.tiers[0].messages, 24);
}

TEST(Estimate, StepsAreTakenForEachSlice) {
  PlanLoad load;
  load.rank.steps = 10;
  const auto seconds = [&](double slices, double crowding) {
    return estimate_of(load, Tiers::flat(4), {.part_bytes = kBytes, .slices = slices, .crowding = crowding}, model()).seconds;
  };
  EXPECT_GT(seconds(1, 1), 0);
  EXPECT_DOUBLE_EQ(seconds(8, 1), 8 * seconds(1, 1));
  EXPECT_DOUBLE_EQ(seconds(1, 2), 2 * seconds(1, 1));
}

// Two ranks of each site send half of what the site exchanges.
TEST(Estimate, RanksOfASiteShareItsFarLink) {
  Tiers sites = made_up_tiers(4, 4, 2).value();
  const PlanLoad load = load_of(2, {.hops = 1, .wire = 0.5, .shared = 1}, 0);
  const auto wire_seconds = [&](double latency, double rate, double crowding) {
    CostModel costs = model();
    costs.world = {latency, rate};
    return estimate_of(load, sites, {.part_bytes = kBytes, .crowding = crowding}, costs).tiers[1].wire_seconds;
  };
  EXPECT_DOUBLE_EQ(wire_seconds(30e-3, 100e6, 1), kBytes / 100e6);
  EXPECT_DOUBLE_EQ(wire_seconds(30e-3, 100e6, 2), kBytes / 100e6) << "a link does not wait for a core";
  EXPECT_DOUBLE_EQ(wire_seconds(30e-3, 20e9, 2), 2 * 0.5 * kBytes / 1e9) << "a rank is as fast as within its site";
  EXPECT_DOUBLE_EQ(wire_seconds(0.1e-3, 100e6, 2), 2 * 0.5 * kBytes / 100e6) << "a near link was measured between two ranks";
  sites.take_rates({{50e6, 50e6}, {200e6, 200e6}});
  EXPECT_DOUBLE_EQ(wire_seconds(30e-3, 100e6, 1), kBytes / 50e6) << "what sites state comes first";
  EXPECT_DOUBLE_EQ(wire_seconds(0.1e-3, 100e6, 1), kBytes / 50e6);
}

TEST(Estimate, AFormThatStatesNoSharedBytesHasThoseOfItsBusiestRank) {
  CostModel costs = model();
  costs.world = {30e-3, 100e6};
  const PlanLoad load = load_of(1, {.hops = 1, .wire = 2}, 0);
  const Tiers sites = made_up_tiers(4, 4, 4).value();
  EXPECT_DOUBLE_EQ(estimate_of(load, sites, {.part_bytes = kBytes}, costs).tiers[0].wire_seconds, 2 * kBytes / 100e6);
}

TEST(Estimate, ACodecTakesBytesOffTheWireAndCostsTimeInMemory) {
  const Tiers hosts = made_up_tiers(8, 4, 1).value();
  const PlanLoad load = load_of(2, {.hops = 1, .wire = 2, .coded = 3}, 0);
  const Workload exact{.part_bytes = kBytes};
  Workload coded = exact;
  coded.wire_share = 0.5;
  coded.coded_tiers = 1;
  EXPECT_EQ(estimate_of(load, hosts, coded, model()).seconds, estimate_of(load, hosts, exact, model()).seconds)
      << "the tier with the bytes is not coded";
  coded.coded_tiers = 2;
  const Estimate estimate = estimate_of(load, hosts, coded, model());
  EXPECT_DOUBLE_EQ(estimate.tiers[1].wire_seconds, kBytes / 1e9);
  EXPECT_DOUBLE_EQ(estimate.memory_seconds, 3 * kBytes / 2e9);
}

}  // namespace
}  // namespace seto
