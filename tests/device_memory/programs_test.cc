// The benchmark on device memory, as a user runs it.
#include "tests/cluster/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/software_gpu/driver/driver_test.h"
#include "tests/support/needs_kernels.h"

namespace seto::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Ended perf(const std::string& program, const std::string& arguments, const std::string& variables) {
  return run_program("bench/" + program, "--memory device -n 2 -w 1 " + arguments, variables);
}
Ended all_reduce_perf(const std::string& arguments, const std::string& variables) {
  return perf("all_reduce_perf", arguments, variables);
}

std::string stand_in(const std::string& variables) {
  if (software_gpu::driver::on_system_driver()) return "";
  return "LD_LIBRARY_PATH='" + std::filesystem::path(software_gpu::driver::stand_in_file()).parent_path().string() + "' " +
         variables;
}

TEST(DevicePrograms, AllReducePerfChecksItsResults) {
  if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  const Ended processes = all_reduce_perf("--ranks 2 -b 64 -e 4K -f 8", stand_in("SOFTWARE_GPU_COUNT=2"));
  EXPECT_EQ(processes.status, 0) << processes.text;
  EXPECT_THAT(processes.text, HasSubstr("# Out of bounds values : 0 OK"));
  const Ended threads = all_reduce_perf("-t 3 -b 1K -e 1K -o max -d int32", stand_in("SOFTWARE_GPU_COUNT=1"));
  EXPECT_EQ(threads.status, 0) << threads.text;
  EXPECT_THAT(threads.text, HasSubstr("# Out of bounds values : 0 OK"));
}

// The stand-in is slower than any GPU, so what it measures is not used; the line says that it was tried.
TEST(DevicePrograms, LinksAreMeasuredAtInitUnlessProcessesShareAGpu) {
  SETO_NEEDS_STAND_IN();
  if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  const Ended own = all_reduce_perf("--ranks 2 -b 64 -e 64", stand_in("SOFTWARE_GPU_COUNT=2 SETO_LOG=info"));
  EXPECT_EQ(own.status, 0) << own.text;
  EXPECT_THAT(own.text, HasSubstr("calls between GPUs: "));
  const Ended shared = all_reduce_perf("--ranks 2 -b 64 -e 64", stand_in("SOFTWARE_GPU_COUNT=1 SETO_LOG=info"));
  EXPECT_EQ(shared.status, 0) << shared.text;
  EXPECT_THAT(shared.text, Not(HasSubstr("calls between GPUs: ")));
}

TEST(DevicePrograms, EightRanksShareAGpu) {
  if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  for (const char* ranks : {"-t 8", "--ranks 8"}) {
    const Ended ended =
        all_reduce_perf(std::string(ranks) + " -b 2K -e 2K", "CUDA_VISIBLE_DEVICES=0 " + stand_in("SOFTWARE_GPU_COUNT=1"));
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("# Out of bounds values : 0 OK"));
  }
}

TEST(DevicePrograms, CallsOfGraphsAndRegisteredBuffersAreChecked) {
  if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  const Ended graphs = all_reduce_perf("-g 2 -G 3 -m 2 -b 64 -e 4K -f 8", stand_in("SOFTWARE_GPU_COUNT=2"));
  EXPECT_EQ(graphs.status, 0) << graphs.text;
  EXPECT_THAT(graphs.text, HasSubstr("# a graph of 2 x 2 calls is launched 3 times, and a captured call is checked"));
  EXPECT_THAT(graphs.text, HasSubstr("# Out of bounds values : 0 OK"));
  const Ended registered = all_reduce_perf("-t 2 -R 1 -b 1K -e 1K", stand_in("SOFTWARE_GPU_COUNT=2"));
  EXPECT_EQ(registered.status, 0) << registered.text;
  EXPECT_THAT(registered.text, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(DevicePrograms, MessagesAndExchangesAreMeasuredToo) {
  if (!support::has_kernels()) GTEST_SKIP() << support::needs_kernels();
  const Ended processes = perf("sendrecv_perf", "--ranks 2 -b 64 -e 32K -f 512", stand_in("SOFTWARE_GPU_COUNT=2"));
  EXPECT_EQ(processes.status, 0) << processes.text;
  EXPECT_THAT(processes.text, HasSubstr("# Out of bounds values : 0 OK"));
  const Ended threads = perf("alltoallv_perf", "-t 3 -b 6K -e 6K", stand_in("SOFTWARE_GPU_COUNT=2"));
  EXPECT_EQ(threads.status, 0) << threads.text;
  EXPECT_THAT(threads.text, HasSubstr("# Out of bounds values : 0 OK"));
}

TEST(DevicePrograms, ADeviceThatIsNotThereIsSaid) {
  SETO_NEEDS_STAND_IN();
  const Ended none = all_reduce_perf("-b 64 -e 64", stand_in("SOFTWARE_GPU_COUNT=0"));
  EXPECT_NE(none.status, 0);
  EXPECT_THAT(none.text, HasSubstr("--memory device: cuInit failed with CUDA_ERROR_NO_DEVICE"));
}

}  // namespace
}  // namespace seto::testing
