// Device programs whose ranks do not all share memory: a relay carries the messages of the others through staging memory and
// streams that are exactly as deep as asked for. The bits are those of the host.

#include <gtest/gtest.h>

#include <random>

#include "src/engine/relay/relay_program.h"
#include "tests/device_engine/emulated_devices.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kOperations = 3;

// All pairs, pairs of different "hosts" (halves of the ranks), or some at random.
RelayedPairs pairs_of(int ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto count = static_cast<std::size_t>(ranks);
  RelayedPairs pairs(count);
  for (std::size_t one = 0; one < count; ++one)
    for (std::size_t other = one + 1; other < count; ++other) {
      const bool other_host = one < count / 2 && other >= count / 2;
      if (seed % 3 == 0 || (seed % 3 == 1 ? other_host : random() % 2 == 0)) pairs.add(one, other);
    }
  return pairs;
}

// Messages whose slots lie in memory of the GPU.
struct OnGpus {
  std::size_t read = 0, copied = 0;
};

// The number of streams that were relayed.
std::size_t compare(const DeviceJob& job, std::uint64_t seed, OnGpus* on_gpus = nullptr) {
  const auto rounds = static_cast<std::uint32_t>(1 + seed % 5);
  const std::string text = job.text() + ", seed " + std::to_string(seed) + ", " + std::to_string(rounds) + " rounds";
  SCOPED_TRACE(text);
  const std::vector<BoundProgram> programs = job.programs();
  const RelayedPairs pairs = pairs_of(job.ranks, seed);
  DeviceCut cut = job.cut();
  cut.delays = delays_of(programs, pairs, rounds);
  auto devices = EmulatedDevices::create(programs, cut, pairs, on_gpus != nullptr ? seed : 0);
  EXPECT_TRUE(devices.ok()) << devices.status().text();
  if (!devices.ok()) return 0;
  expect_bits_of_host(job, programs, seed, kOperations,
                      [&](auto& memory, auto& residuals) { return devices.value()->run(memory, residuals, 20'000); });
  if (on_gpus != nullptr && devices.value()->relay() != nullptr) {
    on_gpus->read += devices.value()->relay()->read_by_devices();
    on_gpus->copied += devices.value()->relay()->copied();
  }
  return devices.value()->relayed_streams();
}

class RelayedDevice : public testing::TestWithParam<int> {};

TEST_P(RelayedDevice, GivesTheBitsOfTheHost) {
  std::uint64_t seed = 100 * static_cast<std::uint64_t>(GetParam());
  std::size_t streams = 0;
  for (const DeviceJob& job : device_jobs(GetParam(), 700)) {
    streams += compare(job, ++seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(streams, 10U);
}

TEST_P(RelayedDevice, GivesTheBitsOfTheHostWithCodecs) {
  std::uint64_t seed = 1000 * static_cast<std::uint64_t>(GetParam());
  std::size_t streams = 0;
  for (const DeviceJob& job : coded_device_jobs(GetParam())) {
    streams += compare(job, ++seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(streams, 0U);
}

// Kernels fill slots in memory of the GPU. Each message is read there, or copied to the host because no rail reads it now or the
// peer does not acknowledge it, and a slot is filled again only after that.
TEST(RelayedFromGpus, GivesTheBitsOfTheHost) {
  std::uint64_t seed = 77;
  OnGpus on_gpus;
  for (const DeviceJob& job : device_jobs(3, 400)) {
    (void)compare(job, ++seed, &on_gpus);
    if (HasFailure()) return;
  }
  EXPECT_GT(on_gpus.read, 100U);
  EXPECT_GT(on_gpus.copied, 100U);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RelayedDevice, testing::Values(2, 3, 4, 5, 8), testing::PrintToStringParamName());

DeviceJob ring_of_three() {
  DeviceJob job{find_algorithm("ring", Collective::all_reduce), 3, DataType::float32, ReduceOp::sum, 2000};
  job.slice_elements = 64;
  return job;
}

TEST(RelayDelays, StagesAfterARelayedMessageLieFurtherApart) {
  const std::vector<BoundProgram> programs = ring_of_three().programs();
  EXPECT_TRUE(delays_of(programs, pairs_of(3, 0), 1).empty());
  const std::vector<std::uint32_t> none = delays_of(programs, RelayedPairs(3), 7);
  const std::vector<std::uint32_t> all = delays_of(programs, pairs_of(3, 0), 7);
  ASSERT_GT(all.size(), 2U);
  ASSERT_EQ(none.size(), all.size());
  for (std::uint32_t stage = 0; stage < all.size(); ++stage) {
    EXPECT_EQ(none[stage], stage);
    EXPECT_EQ(all[stage], 7 * stage);
  }
}

TEST(RelayDelays, SlotsStayFewAndTheStreamIsDeep) {
  const std::vector<BoundProgram> programs = ring_of_three().programs();
  DeviceCut cut = ring_of_three().cut();
  const RelayedPairs pairs = pairs_of(3, 0);
  cut.delays = delays_of(programs, pairs, 20);
  const Result<DeviceChannels> channels = DeviceChannels::join(programs, cut, pairs);
  ASSERT_TRUE(channels.ok()) << channels.status().text();
  ASSERT_FALSE(channels.value().relayed_of(0).empty());
  for (const RelayedChannel& channel : channels.value().relayed_of(0)) {
    EXPECT_LE(channel.depth, 4U);
    EXPECT_GT(channel.ahead, 20U);
  }
}

// Messages have no gaps: together they are as long as what the blocks of a slice hold.
TEST(RelayMessages, HoldTheBytesOfAllBlocksOnly) {
  DeviceJob job = ring_of_three();
  job.blocks = 3;
  job.count = 1000;
  const std::vector<BoundProgram> programs = job.programs();
  const RelayedPairs pairs = pairs_of(3, 0);
  const Result<DeviceChannels> channels = DeviceChannels::join(programs, job.cut(), pairs);
  ASSERT_TRUE(channels.ok()) << channels.status().text();
  const Result<RelayProgram> program = RelayProgram::of(programs[0], job.cut(), channels.value().relayed_of(0));
  ASSERT_TRUE(program.ok()) << program.status().text();
  ASSERT_FALSE(program.value().channels.empty());
  for (const RelayProgram::Channel& channel : program.value().channels) {
    std::size_t all = 0, expected = 0;
    for (std::uint64_t slice = 0; slice < program.value().slices; ++slice) all += program.value().size_of(channel, slice);
    for (const std::uint64_t length : channel.lengths) expected += length * sizeof(float);
    EXPECT_EQ(all, expected);
  }
}

TEST(RelayedFaults, ARankThatNeverLaunchesStopsTheOthers) {
  const DeviceJob job = ring_of_three();
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut(), pairs_of(3, 0));
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  devices.value()->launch_only(2);
  std::vector<DeviceMemory> memory;
  for (Rank rank = 0; rank < 3; ++rank) memory.emplace_back(job, rank, 1);
  std::vector<std::vector<std::byte>> residuals(3);
  EXPECT_EQ(devices.value()->run(memory, residuals, 300).code(), Code::timeout);
}

}  // namespace
}  // namespace seto::support
