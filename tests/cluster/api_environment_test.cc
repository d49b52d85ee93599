#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/cluster/thread_ranks.h"
#include "tests/support/child_process.h"

// setoCommInitEnvironment in processes that have the variables of torchrun on one machine.
namespace seto::testing {
namespace {

using ::testing::HasSubstr;

// Runs each rank in a process, forked before any of them uses the library.
void as_job(int ranks, const std::function<void(int rank)>& body) {
  const std::string job = std::to_string(getpid()) + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::vector<ChildProcess> processes;
  for (int rank = 0; rank < ranks; ++rank)
    processes.emplace_back([&, rank] {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
      setenv("MASTER_ADDR", "localhost", 1);
      setenv("MASTER_PORT", "1", 1);
      setenv("TORCHELASTIC_RUN_ID", job.c_str(), 1);
      body(rank);
      return exit_like_a_program(true);
    });
  for (ChildProcess& process : processes) EXPECT_TRUE(process.wait());
}

int sum_over(setoComm_t comm) {
  int rank = 0;
  int sum = -1;
  EXPECT_TRUE(succeeded(setoCommUserRank(comm, &rank)));
  EXPECT_TRUE(succeeded(setoAllReduce(&rank, &sum, 1, setoInt32, setoSum, comm, nullptr)));
  return sum;
}

TEST(ApiEnvironment, MakesOneCommunicatorAfterAnother) {
  as_job(3, [](int rank) {
    setoComm_t first = nullptr;
    setoComm_t second = nullptr;
    ASSERT_TRUE(succeeded(setoCommInitEnvironment(&first, nullptr)));
    ASSERT_TRUE(succeeded(setoCommInitEnvironment(&second, nullptr)));
    for (setoComm_t comm : {first, second}) {
      int found = -1;
      EXPECT_TRUE(succeeded(setoCommUserRank(comm, &found)));
      EXPECT_EQ(found, rank);
      EXPECT_EQ(sum_over(comm), 3);
    }
    EXPECT_TRUE(succeeded(setoCommDestroy(first)));
    EXPECT_EQ(sum_over(second), 3);
    EXPECT_TRUE(succeeded(setoCommDestroy(second)));
  });
}

TEST(ApiEnvironment, KeepsTheOrderOfCallsInAGroup) {
  as_job(2, [](int) {
    setoConfig_t named[2] = {SETO_CONFIG_INITIALIZER, SETO_CONFIG_INITIALIZER};
    named[0].hostId = "first";
    named[1].hostId = "first";
    setoComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(setoGroupStart()));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(succeeded(setoCommInitEnvironment(&comms[i], &named[i])));
    ASSERT_TRUE(succeeded(setoGroupEnd()));
    for (setoComm_t comm : comms) {
      EXPECT_EQ(sum_over(comm), 1);
      EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
    }
  });
}

TEST(ApiEnvironment, ContinuesInTheBackground) {
  as_job(2, [](int) {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.blocking = setoOff;
    setoComm_t comms[2] = {};
    for (setoComm_t& comm : comms) ASSERT_EQ(setoCommInitEnvironment(&comm, &config), setoInProgress);
    for (setoComm_t comm : comms) {
      setoResult_t state = setoInProgress;
      while (state == setoInProgress) ASSERT_TRUE(succeeded(setoCommGetAsyncError(comm, &state)));
      EXPECT_EQ(state, setoSuccess) << setoGetLastError(comm);
    }
    for (setoComm_t comm : comms) EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  });
}

// Rank 1 is late for the first attempt.
TEST(ApiEnvironment, JoinsAgainAfterAFailure) {
  int failed_first[2];
  ASSERT_EQ(pipe(failed_first), 0);
  as_job(2, [&](int rank) {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.initTimeoutMs = 2000;
    setoComm_t comm = nullptr;
    char mark = 0;
    if (rank == 1) {
      ASSERT_EQ(read(failed_first[0], &mark, 1), 1);
    }
    const setoResult_t first = setoCommInitEnvironment(&comm, &config);
    if (rank == 0) {
      EXPECT_TRUE(failed(first, setoTimeout, "rank 1 of 2 did not join"));
      ASSERT_EQ(write(failed_first[1], &mark, 1), 1);
    } else {
      EXPECT_NE(first, setoSuccess) << "it fails with the reason";
    }
    ASSERT_TRUE(succeeded(setoCommInitEnvironment(&comm, nullptr)));
    EXPECT_EQ(sum_over(comm), 1);
    EXPECT_TRUE(succeeded(setoCommDestroy(comm)));
  });
  close(failed_first[0]);
  close(failed_first[1]);
}

SETO_TEST_ALONE(ApiEnvironment, MisuseIsNamed) {
  setoComm_t comm = nullptr;
  EXPECT_TRUE(failed(setoCommInitEnvironment(nullptr, nullptr), setoInvalidArgument, "comm"));
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.bootstrap.allGather = [](const void*, void*, size_t, void*) { return 1; };
  EXPECT_TRUE(failed(setoCommInitEnvironment(&comm, &config), setoInvalidArgument, "bootstrap"));
  setenv("RANK", "3", 1);
  EXPECT_TRUE(failed(setoCommInitEnvironment(&comm, nullptr), setoInvalidArgument, "WORLD_SIZE"));
  EXPECT_EQ(comm, nullptr);
}

}  // namespace
}  // namespace seto::testing
