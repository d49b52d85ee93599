// Compiled with a replacement of MPI, for cases that no launcher can produce.

#include <seto/mpi.h>

#include "tests/cluster/thread_ranks.h"

namespace seto::testing {
namespace {

__attribute__((noinline)) void use_the_stack() {
  volatile unsigned char bytes[8192];
  for (volatile unsigned char& byte : bytes) byte = 0x3c;
}

__attribute__((noinline)) setoResult_t init_over_mpi(setoComm_t* comm) { return setoCommInitMPI(comm, MPI_COMM_WORLD, nullptr); }

SETO_TEST_ALONE(ApiMpi, a_failure_has_its_code_and_rank) {
  stub_mpi = {3, 5, 77, nullptr};
  setoComm_t comm = nullptr;
  EXPECT_TRUE(failed(init_over_mpi(&comm), setoRemoteError, "returned 77 on rank 3"));
}

SETO_TEST_ALONE(ApiMpi, a_failure_in_a_group_has_them_too) {
  stub_mpi = {3, 5, 77, nullptr};
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(setoGroupStart()));
  EXPECT_TRUE(succeeded(init_over_mpi(&comm)));
  use_the_stack();
  EXPECT_TRUE(failed(setoGroupEnd(), setoRemoteError, "returned 77 on rank 3"));
}

SETO_TEST_ALONE(ApiMpi, without_an_id_the_others_say_what_rank_0_got) {
  setoIdOverMPI told{};
  told.result = setoSystemError;
  stub_mpi = {2, 4, MPI_SUCCESS, &told};
  setoComm_t comm = nullptr;
  EXPECT_TRUE(failed(init_over_mpi(&comm), setoRemoteError, "returned " + std::to_string(setoSystemError) + " on rank 0"));
}

SETO_TEST_ALONE(ApiMpi, a_rank_alone) {
  setoComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(init_over_mpi(&comm)));
  EXPECT_TRUE(succeeded(setoBarrier(comm, nullptr)));
  EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
}

std::string said_of_launcher(const char* name, const char* value, int world = 1) {
  stub_mpi = {0, world, MPI_SUCCESS, nullptr};
  setenv(name, value, 1);
  ::testing::internal::CaptureStderr();
  setoWarnOfOtherLauncher();
  unsetenv(name);
  return ::testing::internal::GetCapturedStderr();
}

SETO_TEST_ALONE(ApiMpi, the_launcher_of_another_mpi_is_named_with_both_numbers) {
  for (const char* const name : {"SETO_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const std::string said = said_of_launcher(name, "2");
    EXPECT_NE(said.find("MPI_COMM_WORLD has 1 rank, but " + std::string(name) + "=2: "), std::string::npos) << said;
    EXPECT_NE(said.find("another MPI's mpirun?"), std::string::npos) << said;
    EXPECT_EQ(said_of_launcher(name, "1"), "");
    EXPECT_EQ(said_of_launcher(name, "2", 2), "") << "this MPI was started";
  }
  setenv("SETO_LOG", "error", 1);
  EXPECT_EQ(said_of_launcher("PMI_SIZE", "2"), "");
  unsetenv("SETO_LOG");
}

}  // namespace
}  // namespace seto::testing
