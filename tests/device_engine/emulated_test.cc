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

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedDevice, testing::Values(1, 2, 3, 4, 5, 8), testing::PrintToStringParamName());

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
