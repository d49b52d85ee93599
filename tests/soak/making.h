#pragma once

#include <string>
#include <vector>

#include "tests/soak/exchange.h"
#include "tests/soak/job.h"

namespace seto::soak {

// A communicator of all ranks of the job, made as the plan says. On the thread of the rank.
Heard make(const Job& job, int rank, setoContext_t context, Seat& seat);
// Those of several ranks of this process at once: one thread makes them in a group.
Heard make_together(const Job& job, const std::vector<int>& ranks, const std::vector<setoContext_t>& contexts,
                    std::vector<Seat>& seats);
// Equal on ranks that the plan puts on one node.
std::string host_of(const Job& job, int rank);
// Until a communicator that does not block has done what it was told, whose result is given.
Heard settled(setoComm_t comm, setoResult_t result);

}  // namespace seto::soak
