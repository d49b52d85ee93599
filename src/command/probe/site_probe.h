#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/command/job.h"

namespace seto::command {

// The result of the probes of a job.
struct ProbedSites {
  std::uint64_t links = 0;
  std::uint64_t bytes = 0;
  std::string topology;  // the links between the sites with their measured rates, as a topology file; empty: there is one site
};

// Collective over all ranks: the first rank of each site sends to the first rank of each other one over the links of the
// communicator, for two seconds and 256 MB a direction at most. `own`: what setoCommTopology wrote for this rank, empty if
// nothing. Rank 0 says how far it is, at most once a second. Returns the exit status of a failure, which has been printed, or 0.
int probe_sites(const JobCommunicator& job, const std::string& own, ProbedSites& probed);

}  // namespace seto::command
