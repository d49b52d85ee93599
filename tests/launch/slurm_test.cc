#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/launch/slurm_cluster.h"

// Jobs under a Slurm that the test starts.
namespace seto::testing {
namespace {

using ::testing::HasSubstr;

// One test for all examples, because the cluster takes seconds to start.
TEST(Slurm, RunsTheExamples) {
  if (const std::string missing = SlurmCluster::missing(); !missing.empty()) GTEST_SKIP() << "skipped: needs " << missing;
  const SlurmCluster cluster;
  ASSERT_TRUE(cluster.up()) << cluster.log();

  const Ended plain = cluster.srun({"-n", "4", built("examples/03_env")});
  EXPECT_EQ(plain.status, 0) << plain.text;
  EXPECT_THAT(plain.text, HasSubstr("rank 3 of 4: sum[0] = 10, expected 10\n"));

  const Ended over_pmi = cluster.srun({"--mpi=pmi2", "-n", "3", built("examples/03_env")});
  EXPECT_EQ(over_pmi.status, 0) << over_pmi.text;
  EXPECT_THAT(over_pmi.text, HasSubstr("rank 2 of 3: sum[0] = 6, expected 6\n"));

  const Ended threads = cluster.srun({"-n", "2", built("examples/04_threads")});
  EXPECT_EQ(threads.status, 0) << threads.text;
  EXPECT_THAT(threads.text, HasSubstr("rank 5 of 6: sum = 15, expected 15\n"));

  const Ended solver = cluster.srun({"-n", "2", built("examples/hpc_cg"), "--size", "100", "--check"});
  EXPECT_EQ(solver.status, 0) << solver.text;
  EXPECT_THAT(solver.text, HasSubstr("the same solution"));

  // A step among the steps of one allocation is a separate job.
  const Ended batch = cluster.srun({"-n", "1", "sh", "-c", std::string("exec '") + built("examples/03_env") + "'"});
  EXPECT_THAT(batch.text, HasSubstr("rank 0 of 1")) << batch.text;

  const Ended failing = cluster.srun({"-n", "2", "-K", "sh", "-c", "exit 3"});
  EXPECT_EQ(failing.status, 3) << failing.text;
}

}  // namespace
}  // namespace seto::testing
