// A build test: what ptxas said of the kernels that the library carries.
#include "tests/support/resource_usage.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "src/device/cuda/kernel_module.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/kernel_images.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/support/needs_kernels.h"

namespace seto::software_gpu::driver {
namespace {

using ::testing::HasSubstr;
using testing::most_registers;
using testing::resource_usage;
using testing::ResourceUsage;
using testing::trouble_of;

class KernelResources : public StandInTest {
 protected:
  void SetUp() override {
    embedded_ = kernels::kernel_images();
    if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
    start();
  }

  // The build puts the log of each image beside it.
  static std::string log_of(const cuda::KernelImage& image) {
    const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
    std::ifstream stream(build / "src/engine/kernels" / ("kernels_" + std::string(image.name) + ".log"));
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  // The launch bounds are those of the PTX.
  void expect_good(const cuda::KernelImage& image, const cuda::KernelModules& modules) {
    std::map<std::string, std::set<std::string>> architectures;
    for (const ResourceUsage& usage : resource_usage(log_of(image))) {
      const auto kernel = modules.find(usage.kernel.c_str(), 1);
      ASSERT_TRUE(ok(kernel.status()));
      const int most = most_registers(kernel.value().most_threads);
      std::printf("%-24s %-8s %9d %7d %5d %7d %6d\n", usage.kernel.c_str(), usage.architecture.c_str(), usage.registers, most,
                  usage.stack_bytes, usage.spilled_bytes, usage.shared_bytes);
      EXPECT_LE(usage.registers, static_cast<int>(kernels::kRegisterGoal)) << usage.kernel << " for " << usage.architecture;
      EXPECT_EQ(trouble_of(usage, kernel.value().most_threads), "") << usage.kernel << " for " << usage.architecture;
      architectures[usage.kernel].insert(usage.architecture);
    }
    EXPECT_TRUE(architectures.contains("seto_run_" + std::string(image.name))) << "the log lacks the kernel";
    for (const auto& [kernel, all] : architectures)
      EXPECT_THAT(all, ::testing::ElementsAre("sm_100", "sm_80", "sm_90")) << kernel;
  }

  cuda::KernelImages embedded_{};
};

TEST_F(KernelResources, NoKernelSpillsOrHasTooManyRegisters) {
  std::printf("%-24s %-8s %9s %7s %5s %7s %6s\n", "kernel", "for", "registers", "of most", "stack", "spilled", "shared");
  for (const cuda::KernelImage& image : embedded_.images) {
    const auto modules = cuda::KernelModules::load(driver(), {{&image, 1}, embedded_.architectures, embedded_.origin});
    ASSERT_TRUE(ok(modules.status()));
    expect_good(image, *modules.value());
    const auto entry = modules.value()->find(("seto_run_" + std::string(image.name)).c_str(), 1);
    ASSERT_TRUE(ok(entry.status()));
    EXPECT_EQ(entry.value().most_threads, static_cast<int>(kernels::kMostThreads));
  }
  EXPECT_EQ(most_registers(static_cast<int>(kernels::kMostThreads)), static_cast<int>(kernels::kMostRegisters));
}

// A report of ptxas 13.0 with numbers of our own.
constexpr const char* kLog = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 4096 bytes smem, 384 bytes cmem[0]
ptxas info    : Compile time = 14.049 ms
ptxas info    : Compiling entry function 'second' for 'sm_100'
ptxas info    : Function properties for _Z6calledPf
    48 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 129 registers, used 0 barriers
ptxas info    : Compiling entry function 'third' for 'sm_90'
)";

TEST(KernelLogs, TheLogIsReadKernelByKernel) {
  const std::vector<ResourceUsage> found = resource_usage(kLog);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].kernel, "first");
  EXPECT_EQ(found[0].architecture, "sm_80");
  EXPECT_EQ(found[0].registers, 96);
  EXPECT_EQ(found[0].shared_bytes, 4096);
  EXPECT_EQ(found[0].spilled_bytes, 0);
  EXPECT_EQ(found[1].kernel, "second");
  EXPECT_EQ(found[1].architecture, "sm_100");
  EXPECT_EQ(found[1].stack_bytes, 48);
  EXPECT_EQ(found[1].spilled_bytes, 20);
  EXPECT_EQ(found[2].registers, 0);
  EXPECT_TRUE(resource_usage("").empty());
}

TEST(KernelLogs, ASpillOrTooManyRegistersAreFound) {
  const std::vector<ResourceUsage> found = resource_usage(kLog);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(trouble_of(found[0], 512), "");
  EXPECT_THAT(trouble_of(found[0], 1024), HasSubstr("more registers"));
  EXPECT_EQ(most_registers(384), 168);
  EXPECT_EQ(most_registers(128), 255);
  EXPECT_THAT(trouble_of(found[1], 256), HasSubstr("spills"));
  EXPECT_THAT(trouble_of(found[2], 512), HasSubstr("no registers"));
}

}  // namespace
}  // namespace seto::software_gpu::driver
