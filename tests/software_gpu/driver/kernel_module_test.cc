// The kernels that the library carries, loaded as the library loads them.
#include "src/device/cuda/kernel_module.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>

#include "src/base/types.h"
#include "src/engine/kernels/kernel_images.h"
#include "tests/software_gpu/driver/driver_test.h"
#include "tests/support/needs_kernels.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::KernelImage;
using cuda::KernelImages;
using cuda::KernelModules;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kThreads = 512;

class Modules : public StandInTest {
 protected:
  using Loaded = Result<std::unique_ptr<const KernelModules>>;

  [[nodiscard]] Loaded load(const KernelImages& images) const { return KernelModules::load(driver(), images); }
  [[nodiscard]] std::string trouble(const KernelImages& images) const { return std::string(load(images).status().text()); }

  // Two images, because a failure of the second one must not keep the first one loaded.
  static KernelImages test_images() {
    static const std::array<KernelImage, 2> images{{{"first", kTestKernels, 0}, {"second", kTestKernels, 0}}};
    return {images, "PTX of compute_80", "written by hand"};
  }
};

TEST_F(Modules, ALibraryWithoutKernelsSaysHowToGetThem) {
  start();
  const Loaded loaded = load({{}, "none", "built without nvcc"});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), Code::unavailable);
  EXPECT_EQ(loaded.status().text(),
            "the library has no GPU kernels (built without nvcc): build it where nvcc 13.0 or later is found; ./dev setup "
            "installs it");
}

TEST_F(Modules, AKernelIsFoundInWhicheverModuleHasIt) {
  start();
  static const std::array<KernelImage, 2> images{
      {{"other", ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry other()\n.maxntid 64, 2, 1\n{\nret;\n}\n", 0},
       {"first", kTestKernels, 0}}};
  const Loaded loaded = load({images, "PTX of compute_80", "written by hand"});
  ASSERT_TRUE(ok(loaded.status()));
  for (const auto& [name, most] : {std::pair{"other", 128}, {"wait_for_flag", 1024}}) {
    const auto kernel = loaded.value()->find(name, most);
    ASSERT_TRUE(ok(kernel.status())) << name;
    EXPECT_GT(kernel.value().registers, 0);
    EXPECT_EQ(kernel.value().most_threads, most);
    EXPECT_FALSE(loaded.value()->find(name, most + 1).ok());
    EXPECT_THAT(std::string(launch(kernel.value().kernel, 1, static_cast<unsigned>(most) + 1, make_stream(), 0).text()),
                StartsWith("cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE"));
  }
  EXPECT_THAT(std::string(loaded.value()->find("seto_run_float128", kThreads).status().text()),
              StartsWith("the library has no kernel 'seto_run_float128' (PTX of compute_80, written by hand)"));
  EXPECT_THAT(std::string(loaded.value()->find("wait_for_flag", 2048).status().text()),
              AllOf(HasSubstr("at most 1024 threads in a block, not 2048"), HasSubstr("use fewer threads")));
}

TEST_F(Modules, TheyAreUnloadedWithTheObject) {
  start();
  cuda::Kernel kernel = nullptr;
  {
    const Loaded loaded = load(test_images());
    ASSERT_TRUE(ok(loaded.status()));
    kernel = loaded.value()->find("wait_for_flag", kThreads).value().kernel;
    // Another context, or none, may be current when the object goes.
    ASSERT_TRUE(ok(driver().ctx_set_current(nullptr)));
  }
  cuda::Context current = context();
  ASSERT_TRUE(ok(driver().ctx_get_current(&current)));
  EXPECT_EQ(current, nullptr);
  ASSERT_TRUE(ok(driver().ctx_set_current(context())));
  int registers = 0;
  EXPECT_EQ(driver().func_get_attribute.code(&registers, cuda::KernelAttribute::registers, kernel),
            cuda::DriverCode::invalid_handle);
}

TEST_F(Modules, FailuresSayWhatToDo) {
  SETO_NEEDS_STAND_IN();
  start();
  const Loaded loaded = load(test_images());
  ASSERT_TRUE(ok(loaded.status()));
  for (const auto& [error, advice] : {std::pair{"cuModuleLoadData:2:2", "too little free memory"},
                                      {"cuModuleLoadData:209:2", "compute capability 8.0 or later"},
                                      {"cuModuleLoadData:218:2", "driver of CUDA 13.0 or later"},
                                      {"cuModuleLoadData:221:2", "libnvidia-ptxjitcompiler.so.1"},
                                      {"cuModuleLoadData:222:2", "driver of CUDA 13.0 or later"},
                                      {"cuModuleLoadData:700:2", "end the process"}}) {
    inject(error);
    EXPECT_THAT(trouble(test_images()),
                AllOf(StartsWith("the GPU kernels 'second' (PTX of compute_80, written by hand) cannot be "
                                 "loaded: cuModuleLoadData failed"),
                      HasSubstr(advice)))
        << error;
  }
  for (const auto& [error, advice] : {std::pair{"cuModuleGetFunction:201:1", "cudaSetDevice"},
                                      {"cuFuncGetAttribute:400:1", "was destroyed"},
                                      {"cuFuncGetAttribute:719:2", "end the process"}}) {
    inject(error);
    EXPECT_THAT(std::string(loaded.value()->find("wait_for_flag", kThreads).status().text()), HasSubstr(advice)) << error;
  }
  inject("cuCtxGetCurrent:3:1");
  EXPECT_THAT(trouble(test_images()), HasSubstr("start processes with spawn"));
  inject("");
  ASSERT_TRUE(ok(driver().ctx_set_current(nullptr)));
  EXPECT_THAT(trouble(test_images()), HasSubstr("call cudaSetDevice in it first"));
}

// The images of the library, as PTX.
class LibraryKernels : public Modules {
 protected:
  void SetUp() override {
    if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  }
};

// tests/device_engine runs them.
TEST_F(LibraryKernels, AreFoundForEachTypeOnEachKindOfGpu) {
  SETO_NEEDS_STAND_IN();
  for (const char* capability : {"80", "89", "90", "120"}) {
    start({{"SOFTWARE_GPU_CAPABILITY", capability}});
    const Loaded loaded = load(kernels::kernel_images());
    ASSERT_TRUE(ok(loaded.status())) << capability;
    const auto expect_found = [&](const std::string& name) {
      EXPECT_TRUE(ok(loaded.value()->find(name.c_str(), kThreads).status())) << name << " on " << capability;
    };
    for (int type = 0; type < kDataTypeCount; ++type)
      expect_found("seto_run_" + std::string(name_of(static_cast<DataType>(type))));
    for (const char* type : {"float", "double", "bfloat16"}) expect_found("seto_run_coded_" + std::string(type));
  }
}

TEST_F(LibraryKernels, AreRefusedOnOlderGpus) {
  SETO_NEEDS_STAND_IN();
  start({{"SOFTWARE_GPU_CAPABILITY", "75"}});
  EXPECT_THAT(trouble(kernels::kernel_images()), AllOf(HasSubstr("sm_80 sm_90 sm_100, PTX of compute_80, built by nvcc 13."),
                                                       HasSubstr("compute capability 8.0 or later")));
}

}  // namespace
}  // namespace seto::software_gpu::driver
