// `seto info` and `seto topo` with the stand-in in place of the driver, as a user runs them.
#include "tests/cluster/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "src/engine/kernels/kernel_images.h"
#include "tests/software_gpu/driver/driver_test.h"

namespace seto::software_gpu::driver {
namespace {

using ::testing::AllOf;
using testing::Ended;
using ::testing::HasSubstr;

constexpr const char* kTwoGpus =
    "CUDA: driver of CUDA 13.0: GPU 0 is Software GPU (compute capability 9.0, 256 MiB, PCI 0000:1a:00.0, NVLink multicast); GPU "
    "1 is Software GPU "
    "(compute capability 9.0, 256 MiB, PCI 0000:1b:00.0, NVLink multicast)";

Ended seto_with(const std::string& arguments, const std::string& variables) {
  const std::string folder = std::filesystem::path(stand_in_file()).parent_path().string();
  return testing::seto(arguments, "LD_LIBRARY_PATH='" + folder + "' " + variables);
}

TEST(ProgramsWithGpus, InfoListsThem) {
  const Ended text = seto_with("info gpus", "SOFTWARE_GPU_COUNT=2");
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.text,
            "CUDA driver  13.0\n"
            "GPU 0        Software GPU  (compute capability 9.0, 256 MiB, PCI 0000:1a:00.0, NVLink multicast)\n"
            "GPU 1        Software GPU  (compute capability 9.0, 256 MiB, PCI 0000:1b:00.0, NVLink multicast)\n");
  EXPECT_EQ(
      seto_with("info gpus --json", "").text,
      R"({"gpus":{"CUDA driver":{"value":"13.0"},"GPU 0":{"value":"Software GPU","remark":"compute capability 9.0, 256 MiB, )"
      R"(PCI 0000:1a:00.0, NVLink multicast"}}})"
      "\n");
  EXPECT_THAT(seto_with("info", "").text, HasSubstr("\n  GPU 0        Software GPU  (compute capability 9.0"));
}

TEST(ProgramsWithGpus, InfoNamesTheKernelsOfTheLibrary) {
  const cuda::KernelImages kernels = kernels::kernel_images();
  const std::string line = std::string("\nkernels           ") + kernels.architectures + "  (" + kernels.origin + ")\n";
  EXPECT_THAT(seto_with("info build", "").text, HasSubstr(line));
  if (kernels.images.empty())
    EXPECT_STREQ(kernels.architectures, "none");
  else
    EXPECT_THAT(line, HasSubstr("sm_80 sm_90 sm_100, PTX of compute_80  (built by nvcc 13."));
}

TEST(ProgramsWithGpus, InfoSaysWhyThereAreNone) {
  EXPECT_THAT(seto_with("info gpus", "SOFTWARE_GPU_COUNT=0").text,
              AllOf(HasSubstr("CUDA driver  13.0  (cuInit failed with CUDA_ERROR_NO_DEVICE"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_THAT(seto_with("info gpus", "SOFTWARE_GPU_VERSION=12040").text,
              AllOf(HasSubstr("CUDA driver  none  (the CUDA driver is of CUDA 12.4"), HasSubstr("580")));
}

TEST(ProgramsWithGpus, TopoSaysWhatTheDriverFound) {
  const Ended text = seto_with("topo", "SOFTWARE_GPU_COUNT=2");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.text, HasSubstr(kTwoGpus));
  EXPECT_THAT(seto_with("topo --json", "SOFTWARE_GPU_COUNT=2").text, HasSubstr(kTwoGpus));
  EXPECT_THAT(seto_with("topo", "SOFTWARE_GPU_ERRORS=cuInit:803").text,
              HasSubstr("CUDA: driver of CUDA 13.0: cuInit failed with CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
}

TEST(ProgramsWithGpus, ASettingThatIsNotUnderstoodEndsTheProgram) {
  for (const char* variable :
       {"SOFTWARE_GPU_COUNTS=2", "SOFTWARE_GPU_COUNT=two", "SOFTWARE_GPU_PEERS=0-1", "SOFTWARE_GPU_ERRORS=cuInit"}) {
    const Ended text = seto_with("info gpus", variable);
    EXPECT_EQ(text.status, 128 + SIGABRT) << variable;
    EXPECT_THAT(text.text, AllOf(HasSubstr("software GPU: SOFTWARE_GPU_"), HasSubstr("is not understood")));
  }
}

}  // namespace
}  // namespace seto::software_gpu::driver
