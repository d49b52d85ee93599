#pragma once

#include <string_view>
#include <vector>

#include "src/core/choice/planner.h"
#include "src/topology/tiers.h"

namespace seto {

// The most ranks of other hosts with which a rank exchanges messages in a call, where some plan of the call needs no more: each
// of them is a connection with its descriptors, buffers and handshake. 32 is as many as a rank can have in a job of 33 hosts
// whose plans are hierarchical: so these keep what is fastest, and 8 ranks of a process have at most 256. It costs little: an
// all_reduce of 128 hosts of 8 ranks takes (simulated, 64 KiB, 1 MiB, 64 MiB) 0.18, 1.12 and 16.2 ms with 2 to 20 peers,
// and 1.04, 1.26 and 17.8 ms with 127 (hierarchical).
inline constexpr int kMostPeers = 32;

// Leaves out the candidates with more peers than the budget if another one that can run keeps it, but not those that are pinned.
// In a job of up to kMostPeers + 1 hosts there is no budget, and those that exist to keep it are left out.
void obey_peer_budget(std::vector<Candidate>& candidates, const Tiers& tiers, std::string_view pin);

}  // namespace seto
