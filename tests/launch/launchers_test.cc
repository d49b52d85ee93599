#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/launch/program.h"

// The examples under other launchers, and started by hand. MPI itself does not run under a sanitizer, because its libraries have
// leaks and races.
namespace seto::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

struct Mpi {
  std::string name;
  std::string package;  // the command that installs it
  Words launcher;       // words before the number of ranks; empty: not installed
  Words variables;
};

// Intel MPI is in build-peers/venv, a folder of the repository, in whose root tests run.
Mpi intel_mpi() {
  const std::string root = std::filesystem::absolute("build-peers/venv").string();
  Mpi mpi{"intel", "Intel MPI (./dev bench host installs it)", {}, {}};
  if (!is_there(root + "/bin/mpiexec.hydra")) return mpi;
  mpi.launcher = {root + "/bin/mpiexec.hydra", "-n"};
  mpi.variables = {"I_MPI_ROOT=" + root, "I_MPI_FABRICS=shm",
                   "LD_LIBRARY_PATH=" + root + "/lib:" + root + "/opt/mpi/libfabric/lib",
                   "FI_PROVIDER_PATH=" + root + "/opt/mpi/libfabric/lib/prov"};
  return mpi;
}

Mpi mpi_of(const std::string& name) {
  if (name == "intel") return intel_mpi();
  Mpi mpi{name, name == "openmpi" ? "Open MPI (./dev test installs it)" : "MPICH (./dev test installs it)", {}, {}};
  const std::string launcher = found({"mpiexec." + name});
  if (launcher.empty()) return mpi;
  mpi.launcher = {launcher};
  if (name == "openmpi") {
    mpi.launcher.emplace_back("--oversubscribe");
    mpi.variables = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  }
  mpi.launcher.emplace_back("-n");
  return mpi;
}

class UnderMpi : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (mpi_.launcher.empty()) GTEST_SKIP() << "skipped: needs " << mpi_.package;
  }
  [[nodiscard]] Ended run_ranks(int ranks, const Words& program, const Words& variables = {}) const {
    Words words = mpi_.launcher;
    words.push_back(std::to_string(ranks));
    words.insert(words.end(), program.begin(), program.end());
    Words all = variables_in(folder_);
    all.insert(all.end(), variables.begin(), variables.end());
    return run(words, all);
  }
  // Open MPI fails if two of its launchers make the same folder in the same moment.
  [[nodiscard]] Words variables_in(const Scratch& folder) const {
    Words all = mpi_.variables;
    all.push_back("OMPI_MCA_orte_tmpdir_base=" + folder.path());
    return all;
  }
  [[nodiscard]] std::string mpi_example() const { return built("examples/02_mpi." + mpi_.name); }

  Mpi mpi_ = mpi_of(GetParam());
  const Scratch folder_;
};

TEST_P(UnderMpi, CommunicatorOfMpi) {
#ifdef SETO_SANITIZED
  GTEST_SKIP() << "skipped: needs a build without sanitizers";
#endif
  if (!is_there(mpi_example())) GTEST_SKIP() << "skipped: needs the compiler of " << mpi_.package << " at configure time";
  const Ended ended = run_ranks(4, {mpi_example()});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(HasSubstr("rank 0 of 4: sum[0] = 6, MPI's result 6\n"),
                                HasSubstr("rank 3 of 4: sum[0] = 6, MPI's result 6\n")));
}

TEST_P(UnderMpi, EnvironmentIsEnough) {
  const Ended ended = run_ranks(4, {built("examples/03_env")});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, AllOf(HasSubstr("rank 0 of 4: sum[0] = 10, expected 10\n"), HasSubstr("rank 3 of 4: sum[0] = 10")));
}

TEST_P(UnderMpi, ThreadsOfProcesses) {
  const Ended ended = run_ranks(2, {built("examples/04_threads")});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 5 of 6: sum = 15, expected 15\n"));
}

TEST_P(UnderMpi, SolverAgreesWithASerialRun) {
  const Ended ended = run_ranks(2, {built("examples/hpc_cg"), "--size", "120", "--check"});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("the same solution"));
}

TEST_P(UnderMpi, TwoJobsAtOnceAreSeparate) {
  Words words = mpi_.launcher;
  words.insert(words.end(), {"2", built("examples/03_env")});
  const Scratch other_folder;
  Program first(words, variables_in(folder_));
  Program second(words, variables_in(other_folder));
  for (Program* job : {&first, &second}) {
    const Ended ended = job->wait();
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2: sum[0] = 3, expected 3\n"));
  }
}

TEST_P(UnderMpi, AMissingRankIsNamed) {
  const Ended ended = run_ranks(3,
                                {"sh", "-c",
                                 std::string("case $OMPI_COMM_WORLD_RANK$PMI_RANK in 1) exec sleep 50 ;; *) exec '") +
                                     built("examples/03_env") + "' ;; esac"},
                                {"SETO_INIT_TIMEOUT_MS=5000"});  // within it the other two have joined
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.text, ::testing::AnyOf(HasSubstr("rank 1 of 3 did not join"), HasSubstr("PMI_FD"))) << ended.text;
}

INSTANTIATE_TEST_SUITE_P(Launchers, UnderMpi, ::testing::Values("openmpi", "mpich", "intel"),
                         [](const auto& instance) { return std::string(instance.param); });

// Starts one process for each rank, each with the variables of its rank.
std::vector<Ended> by_hand(const std::string& program, int ranks, const std::vector<Words>& variables) {
  std::vector<std::unique_ptr<Program>> programs;
  for (int rank = 0; rank < ranks; ++rank)
    programs.push_back(std::make_unique<Program>(Words{program}, variables[static_cast<std::size_t>(rank)]));
  std::vector<Ended> ends;
  for (const auto& started : programs) ends.push_back(started->wait());
  return ends;
}

TEST(ByHand, TorchrunsVariables) {
  const std::string port = std::to_string(free_port());
  std::vector<Words> variables;
  for (const char* rank : {"0", "1", "2"})
    variables.push_back(
        {std::string("RANK=") + rank, "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", std::string("MASTER_PORT=") + port});
  for (const Ended& ended : by_hand(built("examples/03_env"), 3, variables)) {
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("of 3: sum[0] = 6, expected 6\n"));
  }
}

std::vector<Words> rooted(const std::string& root, int ranks, const Words& more = {}) {
  std::vector<Words> variables;
  for (int rank = 0; rank < ranks; ++rank) {
    variables.push_back({std::string("SETO_ROOT=") + root, std::string("SETO_RANK=") + std::to_string(rank),
                         std::string("SETO_RANKS=") + std::to_string(ranks)});
    variables.back().insert(variables.back().end(), more.begin(), more.end());
  }
  return variables;
}

TEST(ByHand, RootsOfAllKinds) {
  const Scratch scratch;
  const std::string port = std::to_string(free_port());
  for (const std::string& root :
       {std::string("127.0.0.1:") + port, std::string("localhost:") + port, std::string("file:") + (scratch / "root")}) {
    for (const Ended& ended : by_hand(built("examples/03_env"), 3, rooted(root, 3))) {
      EXPECT_EQ(ended.status, 0) << root << ": " << ended.text;
      EXPECT_THAT(ended.text, HasSubstr("of 3: sum[0] = 6, expected 6\n")) << root;
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "a root file was left behind";
}

TEST(ByHand, ASecretIsRequiredBeyondLoopback) {
  const Words refused = rooted("192.0.2.1:1", 2)[1];
  const Ended ended = run({built("examples/03_env")}, refused);
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("SETO_SECRET_FILE"), HasSubstr("SETO_ALLOW_NO_SECRET")));
  const Ended torchrun = run({built("examples/03_env")}, {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=192.0.2.1", "MASTER_PORT=1"});
  EXPECT_EQ(torchrun.status, 1);
  EXPECT_THAT(torchrun.text, AllOf(HasSubstr("192.0.2.1:2"), HasSubstr("SETO_SECRET_FILE")));
}

TEST(ByHand, ASecretMustBeTheSame) {
  const std::string root = std::string("127.0.0.1:") + std::to_string(free_port());
  const std::vector<Words> right = rooted(root, 2, {"SETO_SECRET=of this job"});
  for (const Ended& ended : by_hand(built("examples/03_env"), 2, right)) EXPECT_EQ(ended.status, 0) << ended.text;
  std::vector<Words> wrong = rooted(root, 2, {"SETO_INIT_TIMEOUT_MS=3000"});
  wrong[0].emplace_back("SETO_SECRET=of this job");
  wrong[1].emplace_back("SETO_SECRET=of another");
  for (const Ended& ended : by_hand(built("examples/03_env"), 2, wrong)) EXPECT_EQ(ended.status, 1) << ended.text;
}

TEST(ByHand, NoVariablesGiveOneRank) {
  const Ended ended = run({built("examples/03_env")});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("rank 0 of 1: sum[0] = 1, expected 1\n"));
}

TEST(ByHand, WrongAndIncompleteEnvironmentsAreNamed) {
  const auto refusal = [](const Words& variables) {
    const Ended ended = run({built("examples/03_env")}, variables);
    EXPECT_EQ(ended.status, 1) << ended.text;
    return ended.text;
  };
  EXPECT_THAT(refusal({"SETO_ROOT=127.0.0.1:1", "SETO_RANK=0"}), HasSubstr("SETO_RANK is set, but SETO_RANKS is not"));
  EXPECT_THAT(refusal({"SETO_ROOT=127.0.0.1:1", "SETO_RANK=2", "SETO_RANKS=2"}),
              HasSubstr("SETO_RANK=2 is not below SETO_RANKS=2"));
  EXPECT_THAT(refusal({"SETO_RANK=x"}), HasSubstr("SETO_RANK=x"));
  EXPECT_THAT(refusal({"SETO_ROOT=id:00ff", "SETO_RANK=1", "SETO_RANKS=2"}), HasSubstr("unique id"));
  EXPECT_THAT(refusal({"RANK=0", "WORLD_SIZE=2"}), HasSubstr("MASTER_ADDR, MASTER_PORT"));
  EXPECT_THAT(refusal({"OMPI_COMM_WORLD_SIZE=2"}), HasSubstr("OMPI_COMM_WORLD_RANK is not"));
  EXPECT_THAT(refusal({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}),
              HasSubstr("seto/mpi.h"));
  EXPECT_THAT(refusal({"PMI_RANK=0", "PMI_SIZE=2", "PMI_FD=77"}), HasSubstr("PMI_FD=77 is not a socket"));
}

TEST(ByHand, ADuplicateRankFailsAllRanks) {
  const Words same = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                      std::string("MASTER_PORT=") + std::to_string(free_port())};
  for (const Ended& ended : by_hand(built("examples/03_env"), 2, {same, same})) {
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.text, HasSubstr("rank 0 joined twice"));
  }
}

TEST(ByHand, DifferentNumbersOfRanksFailAllRanks) {
  const std::string port = std::string("MASTER_PORT=") + std::to_string(free_port());
  const Words first = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", port};
  const Words second = {"RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", port};
  for (const Ended& ended : by_hand(built("examples/03_env"), 2, {first, second})) {
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.text, HasSubstr("says that the communicator has"));
  }
}

}  // namespace
}  // namespace seto::testing
