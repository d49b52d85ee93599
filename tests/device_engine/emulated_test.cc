// The kernels' source on threads of the host, against the host's own engine: the same bits for every algorithm, type, operation
// and codec.

#include <gtest/gtest.h>

#include <set>

#include "tests/device_engine/emulated_devices.h"

namespace seto::support {
namespace {

constexpr std::uint64_t kOperations = 3;

// Runs the job on the host and on emulated GPUs, operation by operation, in the same workspace.
void compare(const DeviceJob& job, std::uint64_t seed) {
  SCOPED_TRACE(job.text() + ", seed " + std::to_string(seed));
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  expect_bits_of_host(job, programs, seed, kOperations,
                      [&](auto& memory, auto& residuals) { return devices.value()->run(memory, residuals); });
}

class EmulatedDevice : public testing::TestWithParam<int> {};

TEST_P(EmulatedDevice, GivesTheBitsOfTheHost) {
  std::uint64_t seed = 100 * static_cast<std::uint64_t>(GetParam());
  for (const DeviceJob& job : device_jobs(GetParam(), 700)) {
    compare(job, seed += 3);
    if (HasFatalFailure()) return;
  }
}

TEST_P(EmulatedDevice, GivesTheBitsOfTheHostWithCodecs) {
  std::uint64_t seed = 1000 * static_cast<std::uint64_t>(GetParam());
  for (const DeviceJob& job : coded_device_jobs(GetParam())) {
    compare(job, seed += 3);
    if (HasFatalFailure()) return;
  }
}

TEST_P(EmulatedDevice, GivesTheBitsOfTheHostWhenItLends) {
  std::uint64_t seed = 3000 * static_cast<std::uint64_t>(GetParam());
  for (const DeviceJob& job : lending_device_jobs(GetParam(), 700)) {
    compare(job, seed += 3);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedDevice, testing::Values(1, 2, 3, 4, 5, 8), testing::PrintToStringParamName());

// Numbers of ranks that the tests above omit for the sake of their time (8 with sanitizers): one short call of every algorithm.
TEST(EmulatedDeviceRanks, SixToEightRanksGiveTheBitsOfTheHost) {
  constexpr std::uint64_t kCount = 90;
  std::uint64_t seed = 40;
  for (const int ranks : {6, 7, 8})
    for (const DeviceJob& job : device_jobs(ranks, kCount)) {
      if (job.count != kCount) continue;
      compare(job, seed += 3);
      if (HasFatalFailure()) return;
    }
}

// One launch executes a program several times. Each time it reads what it has written before.
TEST(EmulatedLaunch, ProgramsRunOneAfterAnother) {
  constexpr std::uint32_t kTimes = 5;
  for (const char* algorithm : {"ring", "two_shot", "one_shot"}) {
    DeviceJob job{find_algorithm(algorithm, Collective::all_reduce), 3, DataType::int64, ReduceOp::sum, 600};
    job.slice_elements = 96;
    job.blocks = 3;
    job.in_place = true;
    ASSERT_TRUE(job.exists());
    SCOPED_TRACE(job.text());
    const std::vector<BoundProgram> programs = job.programs();
    auto devices = EmulatedDevices::create(programs, job.cut());
    ASSERT_TRUE(devices.ok()) << devices.status().text();
    devices.value()->repeat(kTimes);
    std::vector<DeviceMemory> host;
    for (Rank rank = 0; rank < job.ranks; ++rank) host.emplace_back(job, rank, 77);
    std::vector<DeviceMemory> device = host;
    std::vector<std::vector<std::byte>> residuals(host.size());
    for (int launch = 0; launch < 2; ++launch) {
      for (std::uint32_t time = 0; time < kTimes; ++time) ASSERT_TRUE(run_on_host(programs, host, residuals).ok());
      const Status ran = devices.value()->run(device, residuals);
      ASSERT_TRUE(ran.ok()) << ran.text();
      for (std::size_t rank = 0; rank < host.size(); ++rank) EXPECT_EQ(device[rank].output, host[rank].output);
    }
  }
}

// Every pair of a type and an operation, on one algorithm.
TEST(EmulatedDeviceTypes, AllFoldsGiveTheBitsOfTheHost) {
  std::uint64_t seed = 5;
  for (int type = 0; type < kDataTypeCount; ++type)
    for (int op = 0; op < kReduceOpCount; ++op) {
      DeviceJob job{find_algorithm("two_shot", Collective::all_reduce), 3, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                    501};
      job.slice_elements = 96;
      job.blocks = 2;
      if (!job.exists()) continue;
      compare(job, seed += 3);
      if (HasFatalFailure()) return;
    }
}

TEST(EmulatedDeviceJobs, CoverAllTypesOperationsAndCodecs) {
  std::set<DataType> types;
  std::set<ReduceOp> ops;
  std::set<Codec> codecs;
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    for (const DeviceJob& job : device_jobs(ranks, 700)) {
      types.insert(job.type);
      ops.insert(job.op);
    }
    for (const DeviceJob& job : coded_device_jobs(ranks)) codecs.insert(*job.codec);
  }
  EXPECT_EQ(types.size(), kDataTypeCount);
  EXPECT_EQ(ops.size(), kReduceOpCount);
  EXPECT_EQ(codecs.size(), kCodecCount);
}

// Direct algorithms need no slots at all, whether the buffers are the same or not. A ring sums on its way.
TEST(EmulatedDeviceJobs, DirectAlgorithmsLendAllMessages) {
  struct Case {
    const char* algorithm;
    Collective collective;
    bool all_in_place;
  };
  for (const Case& one : {Case{"two_shot", Collective::all_reduce, true},
                          {"direct", Collective::all_gather, true},
                          {"direct", Collective::reduce_scatter, true},
                          {"direct", Collective::broadcast, true},
                          {"direct", Collective::all_to_all, true},
                          {"one_shot", Collective::all_reduce, false},
                          {"ring", Collective::all_reduce, false}})
    for (const bool in_place : {false, true}) {
      DeviceJob job{find_algorithm(one.algorithm, one.collective), 4, DataType::float32, ReduceOp::sum, 1000};
      ASSERT_NE(job.algorithm, nullptr) << one.algorithm;
      job.in_place = in_place;
      job.lends = true;
      const LentCount count = lent_channels(job.programs());
      EXPECT_EQ(count.lent == count.all, one.all_in_place) << job.text() << ": " << count.lent << " of " << count.all;
      // Every rank knows what the others lend, although it does not know where their buffers lie.
      job.in_place = !in_place;
      EXPECT_EQ(lent_channels(job.programs()).lent, count.lent) << job.text();
    }
}

TEST(EmulatedDeviceFaults, ARankThatNeverLaunchesStopsThoseThatLend) {
  DeviceJob job{find_algorithm("two_shot", Collective::all_reduce), 3, DataType::float32, ReduceOp::sum, 1000};
  job.lends = true;
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  std::vector<DeviceMemory> memory;
  for (Rank rank = 0; rank < job.ranks; ++rank) memory.emplace_back(job, rank, 1);
  std::vector<std::vector<std::byte>> residuals(3);
  devices.value()->launch_only(2);
  EXPECT_EQ(devices.value()->run(memory, residuals, 50).code(), Code::timeout);
}

TEST(EmulatedDeviceFaults, ARankThatNeverLaunchesStopsTheOthers) {
  DeviceJob job{find_algorithm("ring", Collective::all_reduce), 3, DataType::float32, ReduceOp::sum, 100};
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  std::vector<DeviceMemory> memory;
  for (Rank rank = 0; rank < job.ranks; ++rank) memory.emplace_back(job, rank, 1);
  std::vector<std::vector<std::byte>> residuals(3);
  devices.value()->launch_only(2);
  const Status status = devices.value()->run(memory, residuals, 50);
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.text().find("waited 50 ms for operand"), std::string_view::npos) << status.text();
}

}  // namespace
}  // namespace seto::support
