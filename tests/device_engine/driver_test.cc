// The compiled kernels on the software GPU, through the driver as the library calls it, against the host's own engine: the same
// bits, in strong and in weak memory, without a race.

#include "tests/software_gpu/driver/driver_test.h"

#include <algorithm>
#include <map>
#include <string>

#include "src/device/cuda/kernel_module.h"
#include "src/engine/kernels/kernel_images.h"
#include "tests/device_engine/driver_devices.h"
#include "tests/device_engine/kernel_text.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

using software_gpu::driver::ok;

class DeviceEngine : public software_gpu::driver::StandInTest {
 protected:
  void SetUp() override {
    if (!has_kernels()) GTEST_SKIP() << needs_kernels();
  }

  struct Gpus {
    int count = 1;
    std::uint64_t weak_seed = 0;  // 0: strong memory
  };

  void start_gpus(const Gpus& gpus) {
    Variables variables{{"SOFTWARE_GPU_COUNT", std::to_string(gpus.count)}};
    if (gpus.weak_seed != 0) {
      variables["SOFTWARE_GPU_WEAK"] = "1";
      variables["SOFTWARE_GPU_SEED"] = std::to_string(gpus.weak_seed);
    }
    variables["SOFTWARE_GPU_GLOBAL_RACES"] = "1";
    modules_.clear();
    start(variables);
    count_ = gpus.count;
  }

  void TearDown() override { modules_.clear(); }  // before the driver ends

  [[nodiscard]] DriverDevices::Setup setup_for(const BoundProgram& program, unsigned threads) {
    return {&driver(), count_, [this, &program](int gpu) { return kernel_on(gpu, program); }, threads};
  }

  // Each kernel is loaded once on each GPU.
  Result<cuda::Kernel> kernel_on(int gpu, const BoundProgram& program) {
    std::unique_ptr<const cuda::KernelModules>& modules = modules_[{gpu, image_name(program)}];
    if (modules == nullptr) {
      const auto images = kernels::kernel_images().images;
      const auto image =
          std::find_if(images.begin(), images.end(), [&](const auto& one) { return one.name == image_name(program); });
      if (image == images.end()) return failure(Code::internal, "no image %s", image_name(program).c_str());
      SETO_ASSIGN(modules, cuda::KernelModules::load(driver(), {{&*image, 1}, "", ""}));
    }
    SETO_ASSIGN(const cuda::LoadedKernel found, modules->find(kernel_name(program).c_str(), 64));
    return found.kernel;
  }

  // Runs the job on the host and on the GPUs, operation by operation, in the same workspace.
  void compare(const DeviceJob& job, std::uint64_t seed, std::uint64_t operations = 2, unsigned threads = 64) {
    SCOPED_TRACE(job.text() + ", seed " + std::to_string(seed));
    const std::vector<BoundProgram> programs = job.programs();
    auto devices = DriverDevices::create(setup_for(programs.front(), threads), programs, job.cut());
    ASSERT_TRUE(devices.ok()) << devices.status().text();
    expect_bits_of_host(job, programs, seed, operations,
                        [&](auto& memory, auto& residuals) { return devices.value()->run(memory, residuals); });
  }

  int count_ = 1;
  std::map<std::pair<int, std::string>, std::unique_ptr<const cuda::KernelModules>> modules_;
};

// All plans, which trees with sanitizers omit.
class KernelBits : public DeviceEngine {};

TEST_F(KernelBits, GivesTheBitsOfTheHost) {
  std::uint64_t seed = 10;
  for (const int ranks : {1, 2, 3, 4}) {
    start_gpus({ranks});
    for (const DeviceJob& job : device_jobs(ranks, 150)) {
      compare(job, seed += 3);
      if (HasFatalFailure()) return;
    }
  }
}

// On one GPU, and once each: a GPU takes its time to load the kernels, and lanes of many ranks to wait for each other.
TEST_F(KernelBits, FiveToEightRanksGiveTheBitsOfTheHost) {
  std::uint64_t seed = 20;
  start_gpus({1});
  for (const int ranks : {5, 6, 7, 8}) {
    for (const auto& [name, collective] :
         {std::pair{"two_shot", Collective::all_reduce}, std::pair{"ring", Collective::reduce_scatter}}) {
      DeviceJob job{find_algorithm(name, collective), ranks, DataType::float32, ReduceOp::sum, 45};
      ASSERT_TRUE(job.exists());
      compare(job, seed += 3, 1, 32);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(KernelBits, GivesTheBitsOfTheHostWhenItLends) {
  std::uint64_t seed = 10;
  for (const int ranks : {2, 3}) {
    start_gpus({ranks});
    for (const DeviceJob& job : lending_device_jobs(ranks, 150)) {
      compare(job, seed += 3);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(KernelBits, GivesTheBitsOfTheHostWithCodecs) {
  std::uint64_t seed = 10;
  start_gpus({3});
  for (const DeviceJob& job : coded_device_jobs(3)) {
    compare(job, seed += 3);
    if (HasFatalFailure()) return;
  }
}

TEST_F(KernelBits, AllFoldsGiveTheBitsOfTheHost) {
  start_gpus({2});
  std::uint64_t seed = 5;
  for (int type = 0; type < kDataTypeCount; ++type)
    for (int op = 0; op < kReduceOpCount; ++op) {
      DeviceJob job{find_algorithm("one_shot", Collective::all_reduce), 2, static_cast<DataType>(type), static_cast<ReduceOp>(op),
                    133};
      if (!job.exists()) continue;
      for (const bool marked : {false, true}) {
        job.marked = marked;
        compare(job, seed += 3);
        if (HasFatalFailure()) return;
      }
    }
}

TEST_F(KernelBits, WeakMemoryGivesTheSameBitsAndNoRace) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    start_gpus({3, seed});
    for (const char* name : {"ring", "two_shot", "one_shot", "double_tree"}) {
      DeviceJob job{find_algorithm(name, Collective::all_reduce), 3, DataType::float32, ReduceOp::sum, 70};
      job.slice_elements = 32;
      job.blocks = 2;
      job.lends = seed == 2;
      ASSERT_TRUE(job.exists());
      compare(job, seed * 10, 2, 32 * static_cast<unsigned>(1 + seed % 2));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(DeviceEngine, SeveralRanksShareAGpu) {
  start_gpus({1});
  DeviceJob job{find_algorithm("ring", Collective::all_reduce), 4, DataType::int32, ReduceOp::sum, 300};
  job.blocks = 2;
  compare(job, 3);
}

TEST_F(DeviceEngine, ARankThatNeverLaunchesStopsTheOthersAndLeavesTheStreamUsable) {
  start_gpus({3});
  DeviceJob job{find_algorithm("ring", Collective::all_reduce), 3, DataType::float32, ReduceOp::sum, 100};
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = DriverDevices::create(setup_for(programs.front(), 64), programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  std::vector<DeviceMemory> memory;
  for (Rank rank = 0; rank < job.ranks; ++rank) memory.emplace_back(job, rank, 1);
  std::vector<std::vector<std::byte>> residuals(3);
  devices.value()->launch_only(2);
  const Status status = devices.value()->run(memory, residuals, 50);
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.text().find("waited 50 ms for operand"), std::string_view::npos) << status.text();
  compare(job, 5);  // on the same GPUs
}

}  // namespace
}  // namespace seto::support
