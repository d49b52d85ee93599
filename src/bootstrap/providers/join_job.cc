#include "src/bootstrap/providers/join_job.h"

#include <mutex>
#include <string>
#include <utility>

#include "src/bootstrap/providers/local_rendezvous.h"
#include "src/bootstrap/providers/pmi.h"
#include "src/bootstrap/providers/root.h"
#include "src/bootstrap/providers/single_rank.h"
#include "src/bootstrap/rendezvous/servers.h"
#include "src/bootstrap/unique_id.h"

namespace seto {
namespace {

Result<std::unique_ptr<Bootstrap>> join_at(RootJoin join, const Config& config, Deadline until) {
  // An id has a token of its own. Ranks of one machine need no more; others use the secret when they connect.
  if (!join.root.starts_with("id:")) {
    SETO_ASSIGN(join.secret, user_secret(config));
  }
  join.allow_no_secret = config.allow_no_secret;
  SETO_ASSIGN(join.network, NetworkChoice::parse(NetworkSettings::of(config)));
  return join_root(join, until);
}

Result<std::string> ask_launcher(const Launch& launch, const Config& config, Deadline until) {
  std::string mine;
  if (launch.rank == 0) {
    SETO_ASSIGN(const NetworkChoice network, NetworkChoice::parse(NetworkSettings::of(config)));
    SETO_ASSIGN(const UniqueIdBytes id, create_unique_id(UniqueId::Serves::job, network, until));
    mine = hex_text(id);
  }
  SETO_ASSIGN(std::string hex, broadcast_over_pmi(launch.pmi_fd, launch.rank, mine, until));
  return std::string("id:").append(hex);
}

// The root is mutable state of the process: PMI carries one text in the life of a process. So rank 0 sends an id that serves any
// number of communicators.
Result<std::string> root_over_pmi(const Launch& launch, const Config& config, Deadline until) {
  static std::mutex mutex;
  static std::string& root = *new std::string;
  const std::lock_guard lock(mutex);
  if (root.empty()) {
    SETO_ASSIGN(root, ask_launcher(launch, config, until));
  }
  return root;
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, const InitOrder& turn, Deadline until) {
  SETO_TRY(turn.wait(until));
  RootJoin join;
  join.job = launch.job;
  join.rank = launch.rank;
  join.ranks = launch.ranks;
  join.number = turn.number();
  switch (launch.way) {
    case RendezvousKind::alone:
      break;
    case RendezvousKind::root:
      join.root = launch.where;
      return join_at(std::move(join), config, until);
    case RendezvousKind::local:
      return join_local_rendezvous(launch.where, launch.rank, launch.ranks, turn.number(), until);
    case RendezvousKind::pmi: {
      SETO_ASSIGN(join.root, root_over_pmi(launch, config, until));
      return join_at(std::move(join), config, until);
    }
  }
  return std::unique_ptr<Bootstrap>(std::make_unique<SingleRankBootstrap>());
}

}  // namespace seto
