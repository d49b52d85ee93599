// Device programs in virtual time: counts and times against closed forms.

#include "src/engine/simulation/simulated_devices.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>

#include "algorithms/algorithm.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/device/device_lending.h"
#include "src/engine/lowering.h"

namespace seto {
namespace {

constexpr double kFlag = 600, kFence = 1000, kLocalFence = 300, kBarrier = 20, kLatency = 400;

// Bytes cost nothing until a test says so.
SimulatedDevices free_bytes(int ranks) {
  SimulatedDevices devices;
  devices.flag_ns = kFlag;
  devices.fence_ns = kFence;
  devices.local_fence_ns = kLocalFence;
  devices.barrier_ns = kBarrier;
  devices.latency_ns = kLatency;
  devices.port_ns_per_byte.assign(static_cast<std::size_t>(ranks), 0);
  devices.pair_ns_per_byte = [](Rank, Rank) { return 0.0; };
  return devices;
}

struct Job {
  std::string_view algorithm = "ring";
  int ranks = 8;
  std::uint64_t count = 8192;  // elements of fp32, of each part
  std::uint64_t slice_elements = 8192;
  std::uint32_t blocks = 1;
  Collective collective = Collective::all_reduce;
  bool lends = false;
  bool marked = false;
};

Result<DeviceOutcome> run(const Job& job, const SimulatedDevices& devices) {
  const Algorithm* const algorithm = find_algorithm(job.algorithm, job.collective);
  const Tiers tiers = Tiers::flat(job.ranks);
  Shape shape{job.collective, job.ranks, 0, 1, Finish::none};
  shape.pieces = algorithm->pieces(shape, tiers);
  std::vector<Program> lowered;
  std::vector<BoundProgram> bound;
  for (Rank rank = 0; rank < job.ranks; ++rank)
    lowered.push_back(
        lower(build_program(*algorithm, shape, tiers, rank, InPlace::no), shape, InPlace::no, rules_for(DataType::float32)));
  std::vector<LendingRank> variants;
  for (const Program& program : lowered) variants.push_back({&program, nullptr});
  const DeviceLending lending(variants, shape);
  std::uint64_t longest = 1;
  for (Rank rank = 0; rank < job.ranks; ++rank) {
    const Layout layout = Layout::uniform(shape, rank, job.count, 16);
    longest = layout.longest();
    BindRequest request;
    request.program = &lowered[static_cast<std::size_t>(rank)];
    request.shape = shape;
    request.layout = &layout;
    request.tuning = {job.slice_elements, 2, 0};
    const std::vector<LentChannel> lent = lending.channels_of(rank, InPlace::no);
    if (job.lends) request.lent = lent;
    bound.push_back(bind_program(request).value());
  }
  return simulate_devices(bound, {.blocks = job.blocks, .longest = longest, .marked = job.marked}, devices);
}

DeviceOutcome outcome_of(const Job& job, const SimulatedDevices& devices) { return run(job, devices).value(); }

double sum(const DeviceCosts& costs) { return std::accumulate(costs.begin(), costs.end(), 0.0); }
double ns_of(const DeviceOutcome& outcome, DeviceCost cost) { return outcome.path.ns[static_cast<std::size_t>(cost)]; }

// From the begin of the kernel to its first step, and from its last step to its end.
constexpr double kBegin = kLatency + kBarrier;
constexpr double kEnd = 2 * kBarrier + kLatency + kLocalFence;
constexpr double kPass = 2 * kBarrier + kLatency;  // of a step without bytes, before its flags

TEST(SimulatedDevices, OneShotHasExactlyOneExchange) {
  for (const int ranks : {2, 3, 8}) {
    const DeviceOutcome outcome = outcome_of({"one_shot", ranks}, free_bytes(ranks));
    EXPECT_EQ(outcome.hops, 1U) << ranks;
    EXPECT_EQ(outcome.path.waits, 1U) << ranks;
    EXPECT_DOUBLE_EQ(outcome.longest_ns(), kBegin + kPass + kFence + kFlag + kPass + kLocalFence + kEnd) << ranks;
  }
}

// A rank copies n - 1 parts in steps of their own, sums one, and copies n - 1 sums out.
TEST(SimulatedDevices, TwoShotHasTwoExchanges) {
  for (const int ranks : {2, 4, 8}) {
    const DeviceOutcome outcome = outcome_of({"two_shot", ranks}, free_bytes(ranks));
    EXPECT_EQ(outcome.hops, 2U) << ranks;
    EXPECT_EQ(outcome.path.waits, 2U) << ranks;
    const double others = ranks - 1;
    EXPECT_DOUBLE_EQ(outcome.longest_ns(), kBegin + others * (kPass + kFence) + kFlag + (kPass + kFence) + kFlag +
                                               others * (kPass + kLocalFence) + kEnd)
        << ranks;
  }
}

// Lent messages: a post is no pass, a load goes to the peer and back, and a rank ends when its last message was read.
TEST(SimulatedDevices, LentMessagesAreLoadedFromThePeer) {
  constexpr double kLoad = kPass + kFence;
  constexpr double kPost = 2 * kBarrier + kLocalFence;
  for (const int ranks : {2, 4, 8}) {
    Job job{"two_shot", ranks};
    job.lends = true;
    const DeviceOutcome outcome = outcome_of(job, free_bytes(ranks));
    const double others = ranks - 1;
    EXPECT_EQ(outcome.path.waits, 3U) << ranks;
    EXPECT_DOUBLE_EQ(outcome.longest_ns(), kBegin + others * kPost + kFlag + (kLoad + kLocalFence) + kFlag +
                                               others * (kLoad + kLocalFence) + kFlag + kEnd)
        << ranks;
  }
}

TEST(SimulatedDevices, LentMessagesCrossTheLinksOnceAndTheMemoryLess) {
  Job job{"two_shot", 8, 8 * 4096, 1000};
  const DeviceOutcome slots = outcome_of(job, free_bytes(8));
  job.lends = true;
  const DeviceOutcome lent = outcome_of(job, free_bytes(8));
  SimulatedDevices links = free_bytes(8);
  links.port_ns_per_byte.assign(8, 1.0);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(lent.counts[rank].bytes_to, slots.counts[rank].bytes_to);
    // One part read, the sum of it stored, and seven sums stored: all else is read at the peers.
    EXPECT_EQ(lent.counts[rank].memory_bytes, (1 + 1 + 7) * 4.0 * 4096);
  }
  EXPECT_EQ(outcome_of(job, links).path.binding(), DeviceCost::links);
  EXPECT_GE(outcome_of(job, links).longest_ns(), 1.0 * 2 * 7 * 4 * 4096);
  EXPECT_EQ(lent.workspace, DeviceChannels::kFlagArea + kernels::kMarkedArea) << "it has no slots";
}

// A short all_reduce with flags, and with marks in its words.
TEST(SimulatedDevices, AMarkedExchangeHasNeitherFlagsNorFences) {
  Job job{"one_shot", 8, 256, 256};
  SimulatedDevices devices = free_bytes(8);
  const DeviceOutcome flags = outcome_of(job, devices);
  EXPECT_EQ(flags.counts[0].barriers, 7U) << "one at the begin, two for each of two steps, two at the end";
  EXPECT_EQ(flags.counts[0].flags, 14U) << "each message is posted, and each is read";
  job.marked = true;
  const DeviceOutcome marks = outcome_of(job, devices);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(marks.counts[rank].barriers, 1U);
    EXPECT_EQ(marks.counts[rank].flags, 0U);
    EXPECT_EQ(marks.counts[rank].bytes_to[(rank + 1) % 8], 2 * 4 * 256.0) << "each word of 4 bytes has as many of its mark";
    EXPECT_EQ(marks.counts[rank].bytes_to[rank], 0.0);
  }
  EXPECT_EQ(marks.path.waits, 1U) << "for the words of a peer";
  EXPECT_DOUBLE_EQ(marks.longest_ns(), kBarrier + kLatency + kFlag + kLatency);
  EXPECT_DOUBLE_EQ(flags.longest_ns() - marks.longest_ns(), 6 * kBarrier + 2 * kLatency + kFence + 2 * kLocalFence);
  devices.port_ns_per_byte.assign(8, 1.0);
  EXPECT_GE(outcome_of(job, devices).longest_ns(), 7 * 2 * 4 * 256.0);
}

TEST(SimulatedDevices, RingHasAnExchangeForEachHop) {
  for (const int ranks : {2, 5, 8}) {
    const DeviceOutcome outcome = outcome_of({"ring", ranks}, free_bytes(ranks));
    const auto hops = static_cast<std::uint32_t>(2 * (ranks - 1));
    EXPECT_EQ(outcome.hops, hops) << ranks;
    EXPECT_EQ(outcome.path.waits, hops) << ranks;
    EXPECT_DOUBLE_EQ(outcome.longest_ns(), kBegin + hops * (kPass + kFence + kFlag) + (kPass + kLocalFence) + kEnd) << ranks;
  }
}

TEST(SimulatedDevices, CountsBarriersAndFlagsOfABlock) {
  const DeviceOutcome one_shot = outcome_of({"one_shot"}, free_bytes(8));
  const DeviceOutcome ring = outcome_of({"ring"}, free_bytes(8));
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(one_shot.counts[rank].barriers, 1 + 2 * 2 + 2U);
    EXPECT_EQ(one_shot.counts[rank].passes, 2U);
    EXPECT_EQ(one_shot.counts[rank].flags, 7 + 7U);  // posted to each peer, and read from each
    EXPECT_EQ(ring.counts[rank].barriers, 1 + 15 * 2 + 2U);
    EXPECT_EQ(ring.counts[rank].flags, 14 + 14U);
  }
}

TEST(SimulatedDevices, CountsTheBytesOfLinksAndMemory) {
  constexpr std::uint64_t kCount = 8 * 4096;
  constexpr double kBytes = 4.0 * kCount;
  for (const std::uint64_t slice : {std::uint64_t{512}, std::uint64_t{1000}, kCount}) {
    const DeviceOutcome one_shot = outcome_of({"one_shot", 8, kCount, slice}, free_bytes(8));
    const DeviceOutcome two_shot = outcome_of({"two_shot", 8, kCount, slice}, free_bytes(8));
    const DeviceOutcome ring = outcome_of({"ring", 8, kCount, slice}, free_bytes(8));
    for (std::size_t rank = 0; rank < 8; ++rank)
      for (std::size_t peer = 0; peer < 8; ++peer) {
        const double other = peer == rank ? 0 : 1;
        EXPECT_EQ(one_shot.counts[rank].bytes_to[peer], other * kBytes);
        EXPECT_EQ(two_shot.counts[rank].bytes_to[peer], other * 2 * kBytes / 8);
        const double next = peer == (rank + 1) % 8 || peer == (rank + 7) % 8 ? 1 : 0;
        EXPECT_LE(ring.counts[rank].bytes_to[peer], next * 2 * kBytes * 7 / 8);
      }
    for (std::size_t rank = 0; rank < 8; ++rank) {
      const std::vector<double>& to = ring.counts[rank].bytes_to;
      EXPECT_EQ(std::accumulate(to.begin(), to.end(), 0.0), 2 * kBytes * 7 / 8);
      EXPECT_EQ(one_shot.counts[rank].memory_bytes, (1 + 8 + 1) * kBytes);
      // 7 parts read; 8 summed, and the sum stored; 7 sums read and stored.
      EXPECT_EQ(two_shot.counts[rank].memory_bytes, (7 + 9 + 14) * kBytes / 8);
    }
  }
}

TEST(SimulatedDevices, TheSlowestResourceBinds) {
  const Job job{"two_shot", 8, 8 << 20, 1 << 18, 4};
  SimulatedDevices devices = free_bytes(8);
  const DeviceOutcome without = outcome_of(job, devices);
  EXPECT_EQ(without.path.binding(), DeviceCost::fences);
  devices.block_ns_per_byte = 0.01;
  EXPECT_EQ(outcome_of(job, devices).path.binding(), DeviceCost::blocks);
  devices.memory_ns_per_byte = 0.005;
  EXPECT_EQ(outcome_of(job, devices).path.binding(), DeviceCost::memory);
  devices.port_ns_per_byte.assign(8, 0.1);
  const DeviceOutcome linked = outcome_of(job, devices);
  EXPECT_EQ(linked.path.binding(), DeviceCost::links);
  EXPECT_GE(linked.longest_ns(), 0.1 * 2 * (32 << 20) * 7 / 8);
  EXPECT_GT(ns_of(linked, DeviceCost::flags), 0);
}

TEST(SimulatedDevices, ThePathIsTheWholeTime) {
  SimulatedDevices devices = free_bytes(8);
  devices.block_ns_per_byte = 0.01;
  devices.memory_ns_per_byte = 0.001;
  devices.port_ns_per_byte.assign(8, 0.003);
  for (const std::string_view name : {"one_shot", "two_shot", "ring", "double_tree", "halving_doubling", "recursive_doubling"})
    for (const std::uint64_t slice : {500, 5'000, 100'000}) {
      const DeviceOutcome outcome = outcome_of({name, 8, 100'000, slice, 3}, devices);
      EXPECT_NEAR(sum(outcome.path.ns), outcome.longest_ns(), 1e-6 * outcome.longest_ns()) << name << " " << slice;
    }
}

// Blocks share the bytes of a slice: the busiest of them has a part of whole lines.
TEST(SimulatedDevices, MoreBlocksMoveMoreBytes) {
  SimulatedDevices devices = free_bytes(8);
  devices.block_ns_per_byte = 0.01;
  const double one = ns_of(outcome_of({"ring", 8, 1 << 20, 1 << 20, 1}, devices), DeviceCost::blocks);
  EXPECT_NEAR(ns_of(outcome_of({"ring", 8, 1 << 20, 1 << 20, 8}, devices), DeviceCost::blocks), one / 8, one / 1000);
  const Job short_call{"one_shot", 8, 32, 32, 1};  // one line, which one block has
  Job wide = short_call;
  wide.blocks = 32;
  EXPECT_EQ(outcome_of(short_call, devices).longest_ns(), outcome_of(wide, devices).longest_ns());
}

// Seven ranks store to the root at the same time: its port carries one after another.
TEST(SimulatedDevices, AReceiversPortIsShared) {
  SimulatedDevices devices = free_bytes(8);
  devices.port_ns_per_byte.assign(8, 1);
  const Job job{"direct", 8, 1000, 1000, 1, Collective::gather};
  EXPECT_GE(outcome_of(job, devices).longest_ns(), 7 * 4000);
  devices.port_ns_per_byte.assign(8, 0);
  devices.pair_ns_per_byte = [](Rank from, Rank) { return from == 3 ? 1.0 : 0.0; };
  const double slow_pair = outcome_of(job, devices).longest_ns();
  EXPECT_GE(slow_pair, 4000);
  EXPECT_LE(slow_pair, outcome_of(job, free_bytes(8)).longest_ns() + 4000);
}

TEST(SimulatedDevices, RefusesLinksOfOtherRanks) {
  EXPECT_FALSE(run({"ring", 4}, free_bytes(3)).ok());
  SimulatedDevices without = free_bytes(4);
  without.pair_ns_per_byte = nullptr;
  EXPECT_FALSE(run({"ring", 4}, without).ok());
  Job none{"ring", 4};
  none.blocks = 0;
  EXPECT_FALSE(run(none, free_bytes(4)).ok());
}

}  // namespace
}  // namespace seto
