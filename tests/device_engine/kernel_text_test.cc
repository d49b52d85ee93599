#include <gtest/gtest.h>

#include <string>

#include "src/engine/kernels/kernel_images.h"
#include "tests/software_gpu/driver/fatbin.h"
#include "tests/support/needs_kernels.h"

namespace seto::support {
namespace {

// nvcc ends a branch that it holds to be impossible behind the last instruction. It was wrong about one, of sums that are divided
// or scaled, and a kernel that took it ended without a word.
TEST(KernelText, HasNoBranchPastItsLastInstruction) {
  if (!has_kernels()) GTEST_SKIP() << needs_kernels();
  for (const cuda::KernelImage& image : kernels::kernel_images().images)
    for (const int capability : {80, 90}) {
      const std::string ptx = software_gpu::driver::ptx_of_image(image.data, capability);
      const std::size_t end = ptx.rfind("ret;");
      ASSERT_NE(end, std::string::npos) << image.name << ", compute_" << capability;
      EXPECT_EQ(ptx.find("$L__", end), std::string::npos) << image.name << ", compute_" << capability;
    }
}

}  // namespace
}  // namespace seto::support
