#include "src/bootstrap/providers/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace seto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::vector<std::string>;

// Like the library: SETO_* become settings, the other variables stay.
Result<Launch> launched(const Variables& variables) {
  std::vector<const char*> environment;
  for (const std::string& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  SETO_ASSIGN(const Config config, load_config(environment.data()));
  return launch_of(config, environment.data());
}

Launch launch(const Variables& variables) {
  Result<Launch> found = launched(variables);
  EXPECT_TRUE(found.ok()) << found.status().text();
  return found.ok() ? found.value() : Launch();
}

std::string refusal(const Variables& variables) {
  const Result<Launch> found = launched(variables);
  EXPECT_FALSE(found.ok()) << "taken for a job of " << (found.ok() ? name_of(found.value().launcher) : "");
  return std::string(found.status().text());
}

Variables operator+(Variables left, const Variables& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const Variables kOpenMpi = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                            "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=825163777"};
const Variables kPmi = {"PMI_RANK=2", "PMI_SIZE=3", "PMI_FD=9", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=1"};
const Variables kSlurm = {"SLURM_PROCID=3",  "SLURM_NTASKS=8",  "SLURM_STEP_NUM_TASKS=4",       "SLURM_STEP_NUM_NODES=2",
                          "SLURM_JOB_ID=77", "SLURM_STEP_ID=1", "SLURM_STEP_NODELIST=n[03-04]", "SLURM_LOCALID=1"};
const Variables kTorchrun = {"RANK=5",           "WORLD_SIZE=8",     "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                             "MASTER_ADDR=head", "MASTER_PORT=29500"};

TEST(Environment, NoVariablesGiveOneRank) {
  for (const Variables& variables : {Variables{}, Variables{"PATH=/bin", "RANKLE=3", "RANK="}}) {
    const Launch alone = launch(variables);
    EXPECT_EQ(alone.launcher, Launcher::none);
    EXPECT_EQ(alone.way, RendezvousKind::alone);
    EXPECT_EQ(alone.rank, 0);
    EXPECT_EQ(alone.ranks, 1);
  }
}

TEST(Environment, RootWithItsOwnRank) {
  const Launch found = launch(kOpenMpi + Variables{"SETO_ROOT=10.0.0.1:5000", "SETO_RANK=2", "SETO_RANKS=4", "LOCAL_RANK=1"});
  EXPECT_EQ(found.launcher, Launcher::root);
  EXPECT_EQ(found.way, RendezvousKind::root);
  EXPECT_EQ(found.where, "10.0.0.1:5000");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.ranks, 4);
  EXPECT_EQ(found.local_rank, 1);
}

TEST(Environment, RootWithTheRankOfALauncher) {
  const Launch found = launch(kSlurm + Variables{"SETO_ROOT=file:/shared/job"});
  EXPECT_EQ(found.launcher, Launcher::root);
  EXPECT_EQ(found.where, "file:/shared/job");
  EXPECT_EQ(found.job, "Slurm 77 1");
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.ranks, 4);
  EXPECT_THAT(refusal({"SETO_ROOT=a:1"}), AllOf(HasSubstr("SETO_ROOT is set"), HasSubstr("SETO_RANK")));
}

TEST(Environment, AnIncompleteSetOfSetoIsNamed) {
  EXPECT_THAT(refusal({"SETO_ROOT=a:1", "SETO_RANK=0"}), HasSubstr("SETO_RANK is set, but SETO_RANKS is not"));
  EXPECT_THAT(refusal({"SETO_ROOT=a:1", "SETO_RANKS=2"}), HasSubstr("SETO_RANKS is set, but SETO_RANK is not"));
  EXPECT_THAT(refusal({"SETO_RANK=0", "SETO_RANKS=2"}), HasSubstr("SETO_ROOT is not"));
  EXPECT_THAT(refusal({"SETO_ROOT=a:1", "SETO_RANK=2", "SETO_RANKS=2"}), HasSubstr("SETO_RANK=2 is not below SETO_RANKS=2"));
}

TEST(Environment, TorchrunJoinsAtThePortAfterItsStore) {
  const Launch found = launch(kTorchrun);
  EXPECT_EQ(found.launcher, Launcher::torchrun);
  EXPECT_EQ(found.way, RendezvousKind::root);
  EXPECT_EQ(found.where, "head:29501");
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.ranks, 8);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_ranks, 4);
  EXPECT_EQ(launch({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=fd00::2", "MASTER_PORT=80"}).where, "[fd00::2]:81");
  EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65535"}), HasSubstr("SETO_ROOT"));
}

TEST(Environment, TorchrunOnOneMachineNeedsNoPort) {
  for (const Variables& here : {Variables{"MASTER_ADDR=127.0.0.1"}, Variables{"MASTER_ADDR=localhost"},
                                Variables{"MASTER_ADDR=::1"}, Variables{"MASTER_ADDR=head", "LOCAL_WORLD_SIZE=2"}}) {
    const auto at = [&](const char* port) { return launch(here + Variables{"RANK=1", "WORLD_SIZE=2", port}); };
    EXPECT_EQ(at("MASTER_PORT=1").way, RendezvousKind::local);
    EXPECT_NE(at("MASTER_PORT=1").where, at("MASTER_PORT=2").where) << "two jobs of one machine must be separate";
  }
  const Variables retry = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=::1", "MASTER_PORT=1"};
  EXPECT_NE(launch(retry + Variables{"TORCHELASTIC_RESTART_COUNT=0"}).where,
            launch(retry + Variables{"TORCHELASTIC_RESTART_COUNT=1"}).where);
}

TEST(Environment, AnIncompleteSetOfTorchrunIsNamed) {
  EXPECT_THAT(refusal({"RANK=1"}), AllOf(HasSubstr("RANK is set"), HasSubstr("not WORLD_SIZE, MASTER_ADDR, MASTER_PORT")));
  EXPECT_THAT(refusal({"RANK=1", "WORLD_SIZE=2"}), HasSubstr("RANK, WORLD_SIZE are set, but not MASTER_ADDR, MASTER_PORT"));
  EXPECT_THAT(refusal({"MASTER_ADDR=a", "MASTER_PORT=1"}), HasSubstr("not RANK, WORLD_SIZE"));
  EXPECT_THAT(refusal({"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"}),
              HasSubstr("RANK=2 is not below WORLD_SIZE=2"));
  EXPECT_THAT(refusal({"RANK=x", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"}), HasSubstr("RANK=x"));
  EXPECT_THAT(refusal({"RANK=-1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"}), HasSubstr("RANK=-1"));
  EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=0", "MASTER_ADDR=a", "MASTER_PORT=1"}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=70000", "MASTER_ADDR=a", "MASTER_PORT=1"}), HasSubstr("WORLD_SIZE=70000"));
  EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=http"}), HasSubstr("MASTER_PORT=http"));
}

// As in batch scripts, where each process of srun computes its own RANK.
TEST(Environment, AnIncompleteSetOfTorchrunDoesNotHideALauncher) {
  const Launch found = launch(kSlurm + Variables{"WORLD_SIZE=4", "MASTER_ADDR=n03", "MASTER_PORT=29500"});
  EXPECT_EQ(found.launcher, Launcher::slurm);
  EXPECT_EQ(found.rank, 3);
}

TEST(Environment, OpenMpiJoinsByName) {
  const Launch found = launch(kOpenMpi);
  EXPECT_EQ(found.launcher, Launcher::open_mpi);
  EXPECT_EQ(found.way, RendezvousKind::local);
  EXPECT_THAT(found.where, HasSubstr("825163777"));
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.local_ranks, 2);
  EXPECT_THAT(refusal({"OMPI_COMM_WORLD_RANK=0"}), HasSubstr("OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not"));
  EXPECT_THAT(refusal({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2"}),
              AllOf(HasSubstr("several nodes"), HasSubstr("seto/mpi.h"), HasSubstr("SETO_ROOT")));
  EXPECT_THAT(refusal({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"}),
              HasSubstr("PMIX_NAMESPACE"));
}

TEST(Environment, PmiGivesItsDescriptor) {
  const Launch found = launch(kSlurm + kPmi);
  EXPECT_EQ(found.launcher, Launcher::pmi);
  EXPECT_EQ(found.way, RendezvousKind::pmi);
  EXPECT_EQ(found.pmi_fd, 9);
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.ranks, 3);
  EXPECT_EQ(found.local_ranks, 1);
  EXPECT_THAT(refusal({"PMI_RANK=0", "PMI_SIZE=2"}), HasSubstr("PMI_FD is not"));
  EXPECT_THAT(refusal({"PMI_SIZE=2", "PMI_FD=4"}), HasSubstr("PMI_SIZE is set, but PMI_RANK is not"));
  EXPECT_EQ(launch({"PMI_RANK=0", "PMI_SIZE=1"}).way, RendezvousKind::alone);
}

TEST(Environment, SlurmJoinsAtItsFirstNode) {
  const Launch found = launch(kSlurm);
  EXPECT_EQ(found.launcher, Launcher::slurm);
  EXPECT_EQ(found.way, RendezvousKind::root);
  EXPECT_EQ(found.where, "n03:" + std::to_string(port_of_step(77, 1)));
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.ranks, 4) << "the ranks of the step, not of the job";
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_THAT(refusal({"SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n[03"}),
              HasSubstr("SLURM_STEP_NODELIST='n[03'"));
  EXPECT_THAT(refusal({"SLURM_PROCID=3", "SLURM_STEP_ID=0"}), HasSubstr("SLURM_PROCID is set, but SLURM_NTASKS is not"));
}

TEST(Environment, SlurmOnOneNodeJoinsByName) {
  const Variables one = {"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=1", "SLURM_JOB_ID=77"};
  const Launch found = launch(one + Variables{"SLURM_STEP_ID=0"});
  EXPECT_EQ(found.way, RendezvousKind::local);
  EXPECT_EQ(found.local_ranks, 2);
  EXPECT_NE(found.where, launch(one + Variables{"SLURM_STEP_ID=1"}).where);
  EXPECT_EQ(launch(one).launcher, Launcher::none) << "a batch script is not a step";
}

TEST(Environment, FirstHostOfAList) {
  EXPECT_EQ(first_host("vm"), "vm");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("n[03-04],b"), "n03");
  EXPECT_EQ(first_host("n[7,9-12]x"), "n7x");
  EXPECT_EQ(first_host("rack[1-2]n[07,09]"), "rack1n07");
  for (const char* wrong : {"", ",", "n[", "n[]", "n[a-b]", "n]3", "n 3"}) EXPECT_EQ(first_host(wrong), "") << wrong;
}

TEST(Environment, PortsOfStepsAreSpread) {
  std::set<std::uint16_t> ports;
  for (std::uint64_t job = 1000; job < 1100; ++job)
    for (std::uint64_t step = 0; step < 4; ++step) {
      const std::uint16_t port = port_of_step(job, step);
      EXPECT_GE(port, 20'000);
      EXPECT_LT(port, 32'000);
      ports.insert(port);
    }
  EXPECT_GT(ports.size(), 380U);  // of 400; a few collisions are expected
}

}  // namespace
}  // namespace seto
