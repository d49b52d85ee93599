#pragma once

#include "src/base/clock.h"
#include "src/base/config.h"
#include "src/base/result.h"
#include "src/bootstrap/bootstrap.h"
#include "src/core/connect/connected_ranks.h"

namespace seto {

class Context;

struct ConnectSettings {
  Context& context;
  const Config& config;  // of the communicator; the context may have been made with another one
};

// Connects all ranks of the bootstrap, each of which calls this function. On failure all ranks get the same text, that of the
// rank nearest to the cause, and nothing of the attempt stays in the context but what peers may still read.
[[nodiscard]] Result<ConnectedRanks> connect_ranks(Bootstrap& bootstrap, const ConnectSettings& settings, Deadline until);

}  // namespace seto
