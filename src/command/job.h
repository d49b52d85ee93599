#pragma once

#include "include/seto/seto.h"

namespace seto::command {

// True if a launcher started this process as one of several ranks (SETO_RANKS of seto run, or the variables of Open MPI, MPICH,
// Slurm's srun and torchrun).
bool is_in_job();

// The communicator of all ranks of the job that this process belongs to.
class JobCommunicator final {
 public:
  JobCommunicator() = default;
  ~JobCommunicator();
  JobCommunicator(const JobCommunicator&) = delete;
  JobCommunicator& operator=(const JobCommunicator&) = delete;

  // Collective. False if it failed; the reason is printed.
  bool init();

  [[nodiscard]] setoComm_t comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

 private:
  setoComm_t comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace seto::command
