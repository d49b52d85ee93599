#pragma once

#include <string>
#include <vector>

#include "tests/soak/exchange.h"
#include "tests/soak/job.h"

namespace seto::soak {

// Makes a communicator of all ranks of the job, as the plan states. Called on the thread of the rank.
CallResult make(const Job& job, int rank, setoContext_t context, Seat& seat);
// Makes those of several ranks of this process at once, on one thread in a group.
CallResult make_together(const Job& job, const std::vector<int>& ranks, const std::vector<setoContext_t>& contexts,
                         std::vector<Seat>& seats);
// Equal on ranks that the plan places on one node.
std::string host_of(const Job& job, int rank);
// Waits until a non-blocking call has ended, and returns its result.
CallResult settled(setoComm_t comm, setoResult_t result);

}  // namespace seto::soak
