// Tests that need nvcc: CUDA's own header, and fatbins.
#include "tests/software_gpu/nvcc.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/software_gpu/driver/driver_test.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DriverCode;
using ::testing::HasSubstr;

class Nvcc : public StandInTest {
 protected:
  void SetUp() override {
    if (!find_nvcc()) GTEST_SKIP() << kNeedsNvcc;
  }

  static CommandOutput run_nvcc(const std::string& arguments) {
    return run_command("'" + *find_nvcc() + "' " + arguments + " 2>&1");
  }

  static std::string fatbin(const std::string& options) {
    const auto file = std::filesystem::temp_directory_path() / ("seto_" + std::to_string(::getpid()) + ".fatbin");
    const CommandOutput output =
        run_nvcc("-fatbin -std=c++17 " + options + " -o '" + file.string() + "' tests/software_gpu/kernels/driver.cu");
    EXPECT_EQ(output.status, 0) << output.text;
    std::ifstream stream(file, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    std::filesystem::remove(file);
    return bytes;
  }

  [[nodiscard]] cuda::Kernel kernel_of(const std::string& image, const char* name) const {
    cuda::Module module = nullptr;
    EXPECT_TRUE(ok(driver().module_load_data(&module, image.data())));
    cuda::Kernel found = nullptr;
    EXPECT_TRUE(ok(driver().module_get_function(&found, module, name)));
    return found;
  }
};

TEST_F(Nvcc, DeclarationsAgreeWithTheHeaderOfCuda) {
  const CommandOutput output = run_nvcc("-x c++ -std=c++20 -I. -c -o /dev/null tests/software_gpu/driver/header_check.cu");
  EXPECT_EQ(output.status, 0) << output.text;
}

// A check that cannot fail proves nothing.
TEST_F(Nvcc, ADeclarationThatDisagreesIsFound) {
  const CommandOutput output =
      run_nvcc("-x c++ -std=c++20 -I. -DSETO_WRONG_DECLARATIONS -c -o /dev/null tests/software_gpu/driver/header_check.cu");
  EXPECT_NE(output.status, 0);
  for (const char* wrong : {"a wrong argument is found", "a wrong value is found"}) EXPECT_THAT(output.text, HasSubstr(wrong));
}

TEST_F(Nvcc, AFatbinGivesThePtxThatFitsTheGpu) {
  const std::string options =
      "-gencode arch=compute_80,code=[compute_80,sm_80] "
      "-gencode arch=compute_90,code=compute_90 -gencode arch=compute_100,code=compute_100";
  const std::string plain = fatbin("--no-compress " + options);
  const std::string compressed = fatbin("--compress-mode=size " + options);
  EXPECT_LT(compressed.size(), plain.size());
  for (const auto& [capability, architecture, image] :
       {std::tuple{"80", 800U, &plain}, {"89", 800U, &compressed}, {"90", 900U, &plain}, {"120", 1000U, &compressed}}) {
    start({{"SOFTWARE_GPU_CAPABILITY", capability}});
    const cuda::Stream stream = make_stream();
    unsigned* const word = pinned_words(1);
    ASSERT_TRUE(ok(launch(kernel_of(*image, "architecture"), 1, 1, stream, word)));
    ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
    EXPECT_EQ(*word, architecture);
  }
}

TEST_F(Nvcc, ArgumentsOfAllAlignmentsArrive) {
  start();
  struct Arguments {
    unsigned char first;
    double second;
    unsigned* third;
  };
  const cuda::Stream stream = make_stream();
  unsigned* const words = pinned_words(2);
  words[1] = 1000;
  const std::string image = fatbin("--no-compress -gencode arch=compute_90,code=compute_90");
  ASSERT_TRUE(ok(
      launch(kernel_of(image, "sum_of_arguments"), 1, 1, stream, words, short{1}, Arguments{20, 300.0, words + 1}, 40'000ULL)));
  ASSERT_TRUE(ok(driver().stream_synchronize(stream)));
  EXPECT_EQ(words[0], 41'321U);
}

TEST_F(Nvcc, AFatbinThatCannotBeUsedSaysWhy) {
  start();
  cuda::Module module = nullptr;
  const std::string newer = fatbin("--no-compress -gencode arch=compute_100,code=compute_100");
  EXPECT_THAT(std::string(driver().module_load_data(&module, newer.data()).text()),
              HasSubstr("no PTX for compute capability 90"));
  const std::string fast = fatbin("--compress-mode=speed -gencode arch=compute_90,code=compute_90");
  EXPECT_THAT(std::string(driver().module_load_data(&module, fast.data()).text()), HasSubstr("nvcc --compress-mode=size"));
  std::string damaged = fatbin("--compress-mode=size -gencode arch=compute_90,code=compute_90");
  ASSERT_GT(damaged.size(), 16U);
  damaged[damaged.size() - 16] ^= 0x55;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THAT(std::string(driver().module_load_data(&module, damaged.data()).text()), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace seto::software_gpu::driver
