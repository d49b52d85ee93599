#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/bootstrap/bootstrap.h"
#include "src/net/peer_listener.h"
#include "src/net/secret.h"

namespace seto {

// What a rank knows that nobody introduced: where to meet, and who it is.
struct RootJoin {
  // host:port  rank 0's process listens there, the others come to it, as soon as it is there. Of loopback and without a secret it
  //            is only a name, by which ranks of this machine and user meet (named_root.h)
  // file:PATH  rank 0 writes there how to reach it, the others read it: on a file system that all see
  // id:HEX     an id of setoGetJobId or setoGetUniqueId, as 256 hexadecimal digits: whoever made it serves all ranks
  std::string root;
  // Of the job, if a launcher names it (SLURM_JOB_ID and the like): jobs of other names at the same root are strangers.
  std::string job;
  Rank rank = 0;
  int ranks = 1;
  std::uint64_t number = 0;      // of this join among those of this rank, from 0
  std::optional<Secret> secret;  // of SETO_SECRET_FILE or SETO_SECRET
  bool allow_no_secret = false;
  NetworkChoice network;
};

// Meets the other ranks there, in the joins that have the same number. A root serves any number of communicators. What rank 0
// opens stays until its process ends. Blocks until all have come, or the deadline. Over a network a secret is needed, or the
// permission to go without.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_root(const RootJoin& join, Deadline until);

}  // namespace seto
