#pragma once

#include <cstddef>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

// Every launcher's values may have at least so many bytes.
inline constexpr std::size_t kPmiValueLimit = 256;

// Carries a text of rank 0 to all ranks over the descriptor that a launcher gave this process: version 1 of the protocol, lines
// of "name=value" (MPICH, Intel MPI, Slurm's pmi2). The text has no spaces, line ends or '='. Once in the life of a process: it
// takes leave of the launcher, which would otherwise take the end of this process for a crash, and closes the descriptor. On
// failure the descriptor stays open.
[[nodiscard]] Result<std::string> broadcast_over_pmi(int fd, Rank rank, const std::string& text, Deadline until);

}  // namespace seto
