#pragma once

#include <cstdint>
#include <vector>

#include "transports/endpoint.h"
#include "transports/shm/local_process.h"

namespace seto {

// Both members hold a connection to each other that they may use again.
[[nodiscard]] bool both_hold_connection(const AttemptMember& one, const AttemptMember& other);

// The handshakes that the process of member `own` needs with other processes of its host, each with the contexts of both that
// lack a connection. Computed from what all members have announced, so that all members of two processes get the same result. In
// the order of the other process's first member.
[[nodiscard]] std::vector<LocalProcess::Pair> process_pairs(const Attempt& attempt);

}  // namespace seto
