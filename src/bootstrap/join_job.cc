#include "src/bootstrap/join_job.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/bootstrap/named_bootstrap.h"
#include "src/bootstrap/pmi.h"
#include "src/bootstrap/root.h"
#include "src/bootstrap/servers.h"
#include "src/bootstrap/solo.h"
#include "src/bootstrap/unique_id.h"

namespace seto {
namespace {

// What the user gave for it, if anything: a file wins.
Result<std::optional<Secret>> secret_of(const Config& config) {
  if (!config.secret_file.empty()) {
    SETO_ASSIGN(Secret secret, Secret::of_file(config.secret_file));
    return std::optional<Secret>(std::move(secret));
  }
  if (config.secret.empty()) return std::optional<Secret>();
  return std::optional<Secret>(Secret::of_text(config.secret));
}

Result<std::unique_ptr<Bootstrap>> meet_at(const std::string& root, const Launch& launch, const Config& config, Deadline until) {
  RootJoin join;
  join.root = root;
  join.rank = launch.rank;
  join.ranks = launch.ranks;
  join.allow_no_secret = config.allow_no_secret;
  SETO_ASSIGN(join.secret, secret_of(config));
  SETO_ASSIGN(join.network, NetworkChoice::parse(config.interface, config.ports));
  return join_root(join, until);
}

Result<std::unique_ptr<Bootstrap>> join_pmi(const Launch& launch, const Config& config, Deadline until) {
  std::string mine;
  if (launch.rank == 0) {
    SETO_ASSIGN(const NetworkChoice network, NetworkChoice::parse(config.interface, config.ports));
    SETO_ASSIGN(const UniqueIdBytes id, create_unique_id(UniqueId::Serves::communicator, network, until));
    mine = hex_text(id);
  }
  SETO_ASSIGN(const std::string hex, broadcast_over_pmi(launch.pmi_fd, launch.rank, mine, until));
  return meet_at("id:" + hex, launch, config, until);
}

Result<std::unique_ptr<Bootstrap>> join_name(const Launch& launch, Deadline until) {
  SETO_ASSIGN(std::unique_ptr<NamedBootstrap> joined, NamedBootstrap::join(launch.where, launch.rank, launch.ranks, until));
  return std::unique_ptr<Bootstrap>(std::move(joined));
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> join_job(const Launch& launch, const Config& config, Deadline until) {
  switch (launch.way) {
    case MeetingWay::alone:
      break;
    case MeetingWay::root:
      return meet_at(launch.where, launch, config, until);
    case MeetingWay::locally:
      return join_name(launch, until);
    case MeetingWay::pmi:
      return join_pmi(launch, config, until);
  }
  return std::unique_ptr<Bootstrap>(std::make_unique<SoloBootstrap>());
}

}  // namespace seto
