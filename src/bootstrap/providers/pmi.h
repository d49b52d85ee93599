#pragma once

#include <cstddef>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/base/types.h"

namespace seto {

// Every launcher accepts values of this many bytes.
inline constexpr std::size_t kPmiValueLimit = 256;

// Carries a text of rank 0 to all ranks over the descriptor that the launcher gave this process. The protocol is PMI version 1,
// lines of "name=value" (MPICH, Intel MPI, Slurm's pmi2). The text has no spaces, line ends or '='. It may be called once in the
// life of a process: it sends "finalize", without which the launcher would report the end of this process as a crash, and closes
// the descriptor. On failure the descriptor stays open.
[[nodiscard]] Result<std::string> broadcast_over_pmi(int fd, Rank rank, const std::string& text, Deadline until);

}  // namespace seto
