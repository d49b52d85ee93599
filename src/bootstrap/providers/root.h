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

// How a rank joins a job without a unique id from the caller.
struct RootJoin {
  // host:port  rank 0's process listens there, and the others connect once it does. With a loopback host and without a secret
  //            it is only a name, by which ranks of this machine and user join (local_rendezvous.h)
  // file:PATH  rank 0 writes its address there, and the others read it; every host must see the file
  // id:HEX     an id of setoGetJobId or setoGetUniqueId, as 256 hexadecimal digits; the process that made it runs the server
  std::string root;
  // The job's name, if a launcher gives one (SLURM_JOB_ID and the like). Jobs of other names at the same root are rejected.
  std::string job;
  Rank rank = 0;
  int ranks = 1;
  std::uint64_t number = 0;      // counts the joins of this rank at this root, from 0
  std::optional<Secret> secret;  // of SETO_SECRET_FILE or SETO_SECRET
  bool allow_no_secret = false;
  NetworkChoice network;
};

// Joins the other ranks at the root, in the joins that have the same number. A root serves any number of communicators. The
// sockets that rank 0 opens stay open until its process ends. Blocks until all ranks have joined, or until the deadline. A root
// that is reached over a network needs a secret, or allow_no_secret.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_root(const RootJoin& join, Deadline until);

}  // namespace seto
