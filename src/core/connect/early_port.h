#pragma once

#include "src/base/config.h"
#include "src/base/status.h"

namespace seto {

// The facts that a process knows about its job before the ranks are connected.
struct KnownRanks {
  int ranks = 1;
  int local_ranks = 0;  // processes of the job on this host; 0: unknown
};

// If SETO_PORTS names ports: listens on one of them before the ranks join, so that a range that is too small is reported at once,
// and not after the last rank has joined. Ranks of one node need no port: a job that may have one node continues with a warning.
// Failures that have nothing to do with the ports are left to the init.
[[nodiscard]] Status take_port_early(const Config& config, const KnownRanks& known);

}  // namespace seto
