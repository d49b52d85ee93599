#pragma once

#include <memory>

#include "src/core/connect/announced_ranks.h"

namespace seto {

// Makes the peer group of all ranks from their connections, which are indexed by rank: one group for each transport that this
// rank uses, joined by MixedStreams if there are several.
[[nodiscard]] Result<std::shared_ptr<PeerGroup>> join_groups(AnnouncedRanks& announced, const Connections& connections);

}  // namespace seto
