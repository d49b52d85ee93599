#include "src/device/cuda/driver.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "src/device/cuda/driver_list.h"
#include "src/device/cuda/gpu_facts.h"

namespace seto::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CudaDriver, SaysWhatToDoWithoutADriver) {
  const auto opened = Driver::open("/nowhere/libcuda.so.1");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), seto::Code::unavailable);
  EXPECT_THAT(std::string(opened.status().text()), AllOf(StartsWith("the CUDA driver cannot be opened (/nowhere/libcuda.so.1: "),
                                                         HasSubstr("install the NVIDIA driver"), HasSubstr("--gpus all")));
}

TEST(CudaDriver, RefusesALibraryThatIsNoDriver) {
  const auto opened = Driver::open("libm.so.6");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()),
              AllOf(HasSubstr("libm.so.6 has no cuGetProcAddress_v2"), HasSubstr("release 580")));
}

TEST(CudaDriver, RefusesAFileThatIsNoLibrary) {
  const auto file = std::filesystem::temp_directory_path() / ("seto_driver_" + std::to_string(::getpid()));
  std::ofstream(file) << "not a library";
  const auto opened = Driver::open(file.string());
  std::filesystem::remove(file);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("the CUDA driver cannot be opened (" + file.string()));
}

TEST(CudaDriver, AReportWithoutADriverIsOneLine) {
  const GpuReport report = report_gpus("/nowhere/libcuda.so.1");
  EXPECT_EQ(report.driver, "");
  EXPECT_TRUE(report.gpus.empty());
  const std::string line = line_of(report);
  EXPECT_THAT(line, StartsWith("the CUDA driver cannot be opened"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(CudaDriver, ALineNamesEachGpu) {
  GpuReport report{.driver = "13.0"};
  report.gpus.push_back({.number = 0,
                         .name = "NVIDIA H100 80GB HBM3",
                         .capability_major = 9,
                         .memory = 81079ULL << 20,
                         .pci_address = "0000:1b:00.0"});
  report.gpus.push_back({.number = 1,
                         .name = "NVIDIA A100",
                         .capability_major = 8,
                         .memory = 40960ULL << 20,
                         .pci_address = "0000:1c:00.0",
                         .mode = ComputeMode::exclusive_process});
  EXPECT_EQ(line_of(report),
            "driver of CUDA 13.0: GPU 0 is NVIDIA H100 80GB HBM3 (compute capability 9.0, 81079 MiB, PCI 0000:1b:00.0); "
            "GPU 1 is NVIDIA A100 (compute capability 8.0, 40960 MiB, PCI 0000:1c:00.0, compute mode exclusive: one process)");
  report.gpus[0].multicast = true;
  EXPECT_THAT(line_of(report), ::testing::HasSubstr("PCI 0000:1b:00.0, NVLink multicast); GPU 1"));
  report.gpus.clear();
  report.trouble = "cuInit failed";
  EXPECT_EQ(line_of(report), "driver of CUDA 13.0: cuInit failed");
}

TEST(CudaDriver, VersionsAreWritten) {
  EXPECT_EQ(version_text(13000), "13.0");
  EXPECT_EQ(version_text(12080), "12.8");
  EXPECT_EQ(version_text(13021), "13.2");
}

TEST(CudaDriver, EachFunctionIsListedOnce) {
  DriverFunctions functions;
  std::set<std::string> names;
  int count = 0;
  const auto look = [&](const auto& call) {
    ++count;
    names.insert(call.name());
    EXPECT_THAT(call.name(), StartsWith("cu"));
    EXPECT_GE(call.version(), 2000) << call.name();
    EXPECT_LE(call.version(), kOldestDriver) << call.name();
    EXPECT_FALSE(call.is_found());
  };
  for_each_call(functions, look);
  for_each_optional_call(functions, look);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace seto::cuda
