#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "src/engine/kernels/kernel_images.h"
#include "tests/software_gpu/driver/fatbin.h"
#include "tests/software_gpu/machine.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

// The PTX that GPUs of 8.0 and of 9.0 take. Only sums in the switch have two.
std::set<std::string> texts_of(const cuda::KernelImage& image) {
  return {software_gpu::driver::ptx_of_image(image.data, 80), software_gpu::driver::ptx_of_image(image.data, 90)};
}

// All kernels are compiled to PTX for the oldest kind of GPU only, save for sums in the switch. So no other source may ask for
// the number of the kind (`#if __CUDA_ARCH__ >= 900`), which would give newer ones the code of the oldest.
TEST(KernelText, OnlySumsInTheSwitchDependOnTheKindOfGpu) {
  const std::regex asks_for_number("__CUDA_ARCH__\\s*[^)\\s]");
  std::vector<std::string> asking;
  std::size_t sources = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator("src/engine/kernels")) {
    if (!file.is_regular_file()) continue;
    std::ifstream stream(file.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    sources += text.find("__CUDA_ARCH__") != std::string::npos;
    if (std::regex_search(text, asks_for_number)) asking.push_back(file.path().filename());
  }
  EXPECT_GT(sources, 1U);
  EXPECT_EQ(asking, std::vector<std::string>{"multimem.h"});
}

// nvcc ends a branch that it holds to be impossible behind the last instruction. It was wrong about one, of sums that are divided
// or scaled, and a kernel that took it ended without a word.
TEST(KernelText, HasNoBranchPastItsLastInstruction) {
  if (!has_kernels()) GTEST_SKIP() << needs_kernels();
  for (const cuda::KernelImage& image : kernels::kernel_images().images)
    for (const std::string& ptx : texts_of(image)) {
      const std::size_t end = ptx.rfind("ret;");
      ASSERT_NE(end, std::string::npos) << image.name;
      EXPECT_EQ(ptx.find("$L__", end), std::string::npos) << image.name;
    }
}

// A kernel is decoded when it is first launched, so loading a module does not look at the code of its kernels.
TEST(KernelText, HasNoInstructionThatTheSoftwareGpuDoesNotKnow) {
  if (!has_kernels()) GTEST_SKIP() << needs_kernels();
  for (const cuda::KernelImage& image : kernels::kernel_images().images)
    for (const std::string& ptx : texts_of(image)) {
      software_gpu::Machine machine({});
      const software_gpu::Program& program = machine.load(0, ptx);
      std::size_t kernels = 0;
      for (const auto& function : program.functions) {
        if (!function->is_entry) continue;
        ++kernels;
        EXPECT_TRUE(function->code.empty()) << function->name << " was decoded before it was launched";
        EXPECT_NO_THROW(static_cast<void>(program.decoded_entry(function->name))) << image.name;
        EXPECT_GT(function->code.size(), 100U) << function->name;
      }
      EXPECT_GT(kernels, 0U) << image.name;
    }
}

}  // namespace
}  // namespace seto::support
