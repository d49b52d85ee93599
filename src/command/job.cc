#include "src/command/job.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace seto::command {

bool is_in_job() {
  // srun sets SLURM_STEP_NUM_TASKS for the programs that it starts, and not in the shell of an allocation. A pod may have
  // WORLD_SIZE for the programs that will run in it, so that alone is no job: torchrun also states the number of its run.
  static constexpr std::array kCounts = {"SETO_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  const auto several = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && std::atoi(value) > 1;
  };
  return std::any_of(kCounts.begin(), kCounts.end(), several) ||
         (std::getenv("TORCHELASTIC_RUN_ID") != nullptr && several("WORLD_SIZE"));
}

JobCommunicator::~JobCommunicator() {
  if (comm_ != nullptr) (void)setoCommDestroy(comm_);
}

bool JobCommunicator::init() {
  if (const setoResult_t result = setoCommInitEnvironment(&comm_, nullptr); result != setoSuccess) {
    std::fprintf(stderr, "seto: the ranks of the job do not connect: %s: %s\n", setoGetErrorString(result),
                 setoGetLastError(nullptr));
    return false;
  }
  (void)setoCommCount(comm_, &ranks_);
  (void)setoCommUserRank(comm_, &rank_);
  return true;
}

}  // namespace seto::command
