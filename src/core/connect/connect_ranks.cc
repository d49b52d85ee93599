#include "src/core/connect/connect_ranks.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/log.h"
#include "src/bootstrap/job_key.h"
#include "src/control/channel/control_channels.h"
#include "src/control/local/local_connector.h"
#include "src/core/connect/announced_ranks.h"
#include "src/core/connect/connect_peers.h"
#include "src/core/connect/context.h"
#include "src/core/connect/deferred_cleanup.h"
#include "src/core/connect/join_groups.h"
#include "src/core/connect/opened_connections.h"
#include "src/core/connect/rank_sites.h"
#include "src/net/token.h"
#include "src/topology/host_identity.h"
#include "src/topology/xml/file_text.h"
#include "src/topology/xml/topology_file.h"

namespace seto {
namespace {

// For one round trip, and no more than a quarter of the time that is left. Where it takes longer, every two processes connect.
constexpr std::uint64_t kMeasureMs = 5'000;

std::uint64_t random_number() {
  const Token token = random_token();
  std::uint64_t number = 0;
  std::memcpy(&number, token.data(), sizeof number);
  return number;
}

bool blames_a_peer(const Status& status) {
  return status.code() == Code::remote_error || status.code() == Code::timeout || status.code() == Code::aborted;
}

std::string words_of_place() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown:" + std::to_string(getpid());
  return std::string(name.data()) + ":" + std::to_string(getpid());
}

// The secret that rank 0 proposed.
Result<Secret> proposed_secret(const std::vector<EndpointAnnouncement>& endpoints) {
  const std::string& proposed = endpoints.front().secret;
  if (proposed.size() != Secret::kSize) return failure(Code::remote_error, "rank 0 proposed no secret for the job");
  std::array<std::uint8_t, Secret::kSize> bytes;
  std::copy(proposed.begin(), proposed.end(), bytes.begin());
  return Secret(bytes);
}

// Once in a process: torch makes many communicators over one store.
void warn_of_readable_key() {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  SETO_LOG_AS(
      warn, (LogOrigin{0, 0}),
      "the key of this job travelled in clear over the user's all_gather (a torch Store, MPI): a process that reads it "
      "can connect as a rank; set SETO_SECRET_FILE to the same secret for every rank, or SETO_ALLOW_NO_SECRET=1 where every "
      "host of the network is trusted");
}

// Each once in a process, because a split of the job lacks most hosts of the file.
void tell_unmatched(const RankSites& sites, const std::vector<RankAnnouncement>& all) {
  static std::atomic<bool> told_why{false};
  static std::atomic<bool> told_unused{false};
  const std::string why = sites.why_no_file(all);
  const std::string unused = sites.hosts_not_in_job(all);
  if (!why.empty() && !told_why.exchange(true)) SETO_LOG_AS(warn, (LogOrigin{0, 0}), "%s", why.c_str());
  if (!unused.empty() && !told_unused.exchange(true)) SETO_LOG_AS(info, (LogOrigin{0, 0}), "%s", unused.c_str());
}

// Once in a process, as above.
void warn_of_far_hosts(const RankSites& sites, const std::vector<RankAnnouncement>& all) {
  static std::atomic<bool> told{false};
  const std::vector<std::string> lines = sites.far_within_sites(all);
  if (lines.empty() || told.exchange(true)) return;
  for (const std::string& line : lines) SETO_LOG_AS(warn, (LogOrigin{0, 0}), "%s", line.c_str());
}

// The sites that SETO_TOPOLOGY_FILE states.
Result<StatedSites> sites_of_file(const std::string& path) {
  if (path.empty()) return StatedSites();
  const Result<std::string> text = topology_file_text(path);
  if (!text.ok()) return failure(Code::invalid_argument, "SETO_TOPOLOGY_FILE: %s", std::string(text.status().text()).c_str());
  Result<TopologyGraph> graph = read_topology(text.value());
  if (!graph.ok())
    return failure(Code::invalid_argument, "SETO_TOPOLOGY_FILE: %s: %s", path.c_str(),
                   std::string(graph.status().text()).c_str());
  return StatedSites(std::move(graph).value(), digest_of_content(text.value()));
}

// Builds the ConnectedRanks of one attempt. Gives back what it holds if the result is not taken.
class RankConnector final {
 public:
  RankConnector(Bootstrap& bootstrap, const ConnectSettings& settings)
      : bootstrap_(bootstrap), context_(settings.context), config_(settings.config) {
    ranks_.rank = bootstrap.rank();
    ranks_.ranks = bootstrap.size();
    announced_.rank = static_cast<std::size_t>(ranks_.rank);
  }
  RankConnector(const RankConnector&) = delete;
  RankConnector& operator=(const RankConnector&) = delete;
  ~RankConnector() {
    if (ranks_.peer_group != nullptr) leave_ranks(context_, std::move(ranks_), {});
  }

  Status connect(Deadline until);
  ConnectedRanks take() { return std::move(ranks_); }

 private:
  Status prepare_announcement();
  Status use_transport(std::size_t index);
  Status reserve_seat(std::size_t transport, std::size_t members);
  Status exchange_announcements(Deadline until);
  Status prepare_endpoints(EndpointAnnouncement& own);
  Status exchange_endpoints(Deadline until);
  Status derive_key();
  [[nodiscard]] bool first_transport_reaches_all() const { return announced_.members_of(0).size() == announced_.all.size(); }
  Status join_peers(PeerConnections& peers, Deadline until);
  Status look_for_one_site(Deadline until);
  void tell_relays() const;
  void decline(const Status& reason);
  Status agree_on_outcome(const Status& made, Deadline until);
  [[nodiscard]] std::vector<std::uint32_t> round_trips_us() const;
  Status settle(const Status& made, const std::vector<std::string>& texts);
  void tell_sites() const;
  void limit_pace() const;

  Bootstrap& bootstrap_;
  Context& context_;
  const Config& config_;
  AnnouncedRanks announced_;
  RankSites sites_;
  ConnectedRanks ranks_;
  std::optional<Secret> user_secret_;
  RelayChoice relay_choice_;
  std::uint32_t to_first_host_us_ = 0;  // measured before the ranks connect; 0: it was not
  StatedSites topology_;                // until `sites_` has it
  Status seat_status_;  // the failure to reserve a seat for all ranks, which only matters if the first transport reaches them
};

Status RankConnector::prepare_announcement() {
  RankAnnouncement& own = announced_.own;
  own.site = config_.site_id;
  own.uplink_mbit = config_.site_uplink_mbit;
  own.downlink_mbit = config_.site_downlink_mbit;
  own.pacing_mbit = config_.site_pacing_mbit;
  own.found_site = context_.found_site(config_.site_round_trip_us);
  own.place.context = context_.id();
  own.machine = machine_number();
  own.machine_cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  own.take_cores(CoreSet::of_thread());
  own.nonce = random_number();
  own.connect = static_cast<std::uint64_t>(config_.connect);
  own.near_us = config_.deterministic ? 0 : config_.site_round_trip_us;
  own.relay = static_cast<std::uint64_t>(config_.control_relay);
  own.tls = static_cast<std::uint64_t>(config_.tls) | (config_.tls_certificate.empty() ? 0 : kTlsWithCertificates);
  SETO_ASSIGN(own.place.host, host_identity(config_.host_id));
  if (config_.transport == Medium::tcp) own.place.host += " rank " + std::to_string(ranks_.rank);
  own.words = words_of_place();
  SETO_ASSIGN(topology_, sites_of_file(config_.topology_file));
  own.topology = topology_.digest();
  own.file_host = topology_.host_of(config_.host_id, std::string_view(own.words).substr(0, own.words.rfind(':')));
  SETO_ASSIGN(LocalConnector* const connector, LocalConnector::of_process());
  own.place.process = connector->address();
  context_.run_cleanups();  // gives back memory of destroyed communicators
  announced_.known = context_.known(own.place.host);
  own.offered = announced_.known.offered();
  SETO_TRY(use_transport(0));
  seat_status_ = reserve_seat(0, static_cast<std::size_t>(ranks_.ranks));
  if (seat_status_.ok()) own.seat = announced_.transports[0].seat->announcement();
  return {};
}

Status RankConnector::use_transport(std::size_t index) {
  SETO_ASSIGN(Endpoint* const endpoint, context_.transports().open(index));
  announced_.transports.push_back({&context_.transports()[index], endpoint, nullptr});
  return {};
}

// Replaces the seat that this rank has, if any. The first round announces a seat in a group of all ranks; if the first transport
// does not reach all of them, a seat in a smaller group is announced with the addresses.
Status RankConnector::reserve_seat(std::size_t transport, std::size_t members) {
  AttemptTransport& one = announced_.transports[transport];
  one.seat.reset();
  SETO_ASSIGN(one.seat, one.endpoint->reserve_seat({static_cast<int>(members), ranks_.ranks}));
  return {};
}

// The first round. A rank takes part in it even if its own preparation has failed, so that all ranks end with the same text.
Status RankConnector::exchange_announcements(Deadline until) {
  const Status prepared = prepare_announcement();
  announced_.own.outcome = outcome_text(prepared);
  const Result<std::vector<std::string>> texts = bootstrap_.all_gather(announced_.own.encoded(), until);
  if (!texts.ok()) return prepared.ok() ? texts.status() : prepared;
  SETO_ASSIGN(announced_.all, announcements_of(texts.value()));
  std::vector<std::string> outcomes;
  for (const RankAnnouncement& one : announced_.all) {
    outcomes.push_back(one.outcome);
    ranks_.places.push_back(one.words);
  }
  SETO_TRY(common_outcome(ranks_.rank, prepared, outcomes));
  SETO_TRY(same_tls(announced_.all));
  SETO_TRY(same_topology(announced_.all));
  SETO_ASSIGN(sites_, RankSites::of(announced_.all, config_.deterministic, std::move(topology_)));
  const std::string& own_site = sites_.stated_site(announced_.rank);
  for (std::size_t peer = 0; peer < announced_.all.size(); ++peer)
    announced_.same_site.push_back(!own_site.empty() && sites_.stated_site(peer) == own_site);
  SETO_ASSIGN(announced_.on_first_use, opens_on_first_use(announced_.all, sites_));
  SETO_ASSIGN(relay_choice_, relays_control(announced_.all, sites_, announced_.on_first_use));
  announced_.relays = relay_choice_.relays;
  if (announced_.relays != Relays::no) {
    announced_.site_of = sites_.sites().of_rank;
    announced_.site_names = sites_.names();
  }
  announced_.proved = proved_by(announced_.rank, sites_);
  announced_.needs = sites_.needs_of(announced_.rank);
  // An operation that waits for the connection fails by the reason of the connection, not by its own deadline.
  announced_.opening_ms = std::min(config_.init_timeout_ms, config_.operation_timeout_ms / 4 * 3);
  ranks_.ranks_per_core = announced_.ranks_per_core = most_ranks_per_core(announced_.all);
  ranks_.attempt = announced_.attempt = attempt_of(texts.value());
  context_.expect_ranks_per_core(ranks_per_core_at(announced_.own, announced_.all));
  return {};
}

// Opens all transports and reserves a seat in the group of each.
Status RankConnector::prepare_endpoints(EndpointAnnouncement& own) {
  if (!bootstrap_.has_user_secret()) {
    SETO_ASSIGN(user_secret_, user_secret(config_));
  }
  own.secret_check = secret_check(user_secret_, ranks_.attempt);
  for (std::size_t index = 1; index < context_.transports().count(); ++index) SETO_TRY(use_transport(index));
  own.wants = announced_.wants_connection();
  for (std::size_t index = 0; index < announced_.transports.size(); ++index) {
    SETO_TRY(reserve_seat(index, announced_.members_of(index).size()));
    const AttemptTransport& one = announced_.transports[index];
    own.transports[index] = {one.endpoint->address(config_), one.seat->announcement()};
  }
  return {};
}

// A round for ranks that the first transport does not connect: how each is reached over the others, and the secret with which
// they authenticate each other. Jobs on one node never listen on a network.
Status RankConnector::exchange_endpoints(Deadline until) {
  ranks_.over_network = true;
  EndpointAnnouncement own;
  own.transports.resize(context_.transports().count());
  const Secret* const known = bootstrap_.secret();
  if (known == nullptr && ranks_.rank == 0) own.secret = Secret::random().bytes();
  const Status prepared = prepare_endpoints(own);
  own.outcome = outcome_text(prepared);
  SETO_ASSIGN(const std::vector<std::string> texts, bootstrap_.all_gather(own.encoded(), until));
  std::vector<std::string> outcomes;
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    Result<EndpointAnnouncement> decoded = EndpointAnnouncement::decoded(texts[peer], own.transports.size());
    if (!decoded.ok()) return failure(Code::remote_error, "rank %zu: %s", peer, std::string(decoded.status().text()).c_str());
    outcomes.push_back(decoded.value().outcome);
    announced_.endpoints.push_back(std::move(decoded).value());
  }
  SETO_TRY(common_outcome(ranks_.rank, prepared, outcomes));
  // Where one rank needs the overlay of this attempt, all take part, also those that have all their connections.
  if (std::none_of(announced_.endpoints.begin(), announced_.endpoints.end(), [](const auto& one) { return one.wants; }))
    announced_.relays = Relays::no;
  SETO_TRY(derive_key());
  announced_.key = ranks_.key;
  for (const AttemptTransport& one : announced_.transports) ranks_.admissions.push_back(one.endpoint->admit(ranks_.key));
  return {};
}

// The key of the ranks: what the bootstrap knows or rank 0 proposed, and the secret that the user gave. A process that
// reads the messages of a bootstrap, or an id that a launcher passes on, lacks the latter.
Status RankConnector::derive_key() {
  std::vector<std::string> checks;
  for (const EndpointAnnouncement& one : announced_.endpoints) checks.push_back(one.secret_check);
  SETO_TRY(check_same_secret(checks));
  const Secret* const known = bootstrap_.secret();
  if (known != nullptr) {
    ranks_.key = known->derive("communicator");
  } else {
    SETO_ASSIGN(ranks_.key, proposed_secret(announced_.endpoints));
  }
  ranks_.key = with_user_secret(ranks_.key, user_secret_);
  const bool readable = known == nullptr && bootstrap_.readable_by_others() && !user_secret_;
  if (readable && ranks_.rank == 0 && !config_.allow_no_secret && on_several_machines(announced_.all)) warn_of_readable_key();
  return {};
}

// A round before ranks connect, where their sites are not known: whether every host is near the first one, which is then the only
// head that is found in the last round. Else every two processes connect, because all their round trips are needed.
Status RankConnector::look_for_one_site(Deadline until) {
  if (announced_.relays != Relays::if_one_site) return {};
  std::vector<std::size_t> first_of(sites_.hosts());
  for (std::size_t rank = announced_.all.size(); rank-- > 0;) first_of[sites_.host_of(rank)] = rank;
  const auto near_us = static_cast<std::uint32_t>(announced_.all.front().near_us);
  if (announced_.rank != 0 && first_of[sites_.host_of(announced_.rank)] == announced_.rank) {
    const std::size_t over = announced_.transport_to(0);
    const Deadline measured = until.sooner_ms(std::min(kMeasureMs, static_cast<std::uint64_t>(until.remaining_ms()) / 4));
    to_first_host_us_ =
        announced_.transports[over].endpoint->measure_round_trip(attempt_over(announced_, over), 0, near_us, measured);
  }
  const std::string own(reinterpret_cast<const char*>(&to_first_host_us_), sizeof to_first_host_us_);
  SETO_ASSIGN(const std::vector<std::string> texts, bootstrap_.all_gather(own, until));
  announced_.relays = Relays::yes;
  for (std::uint32_t host = 1; host < sites_.hosts(); ++host) {
    std::uint32_t round_trip_us = 0;
    const std::string& text = texts[first_of[host]];
    if (text.size() == sizeof round_trip_us) std::memcpy(&round_trip_us, text.data(), sizeof round_trip_us);
    if (round_trip_us == 0 || round_trip_us >= near_us) announced_.relays = Relays::no;
  }
  if (announced_.relays == Relays::no) relay_choice_.why = "not all hosts are near the first one";
  return {};
}

// Where processes have no connections to open, they pass nothing on, and that is no choice.
void RankConnector::tell_relays() const {
  if (ranks_.rank != 0 || !relay_choice_.tell) return;
  if (announced_.relays == Relays::yes)
    SETO_LOG_AS(info, (LogOrigin{0, 0}),
                "%zu processes pass control messages on, so that each has control connections to few others (SETO_CONTROL_RELAY)",
                relay_choice_.processes);
  else if (*relay_choice_.why != '\0')
    SETO_LOG_AS(info, (LogOrigin{0, 0}), "each of %zu processes has control connections to all others (SETO_CONTROL_RELAY): %s",
                relay_choice_.processes, relay_choice_.why);
}

Status RankConnector::join_peers(PeerConnections& peers, Deadline until) {
  SETO_TRY(peers.open(until));
  SETO_ASSIGN(ranks_.peer_group, join_groups(announced_, peers.connections()));
  ranks_.connections = peers.connections();
  context_.keep(ranks_.connections, announced_.own.place.host);
  return {};
}

// Tells peers that wait for a connection to this rank that it will not come.
void RankConnector::decline(const Status& reason) {
  const Status told = connect_failure(ranks_.rank, reason);
  for (std::size_t index = 0; index < announced_.transports.size(); ++index)
    announced_.transports[index].endpoint->decline(attempt_over(announced_, index), told);
}

// The last round: all ranks learn whether all of them are connected, and how far their hosts are from each other.
Status RankConnector::agree_on_outcome(const Status& made, Deadline until) {
  FinalAnnouncement own{outcome_text(made), {}};
  if (made.ok()) own.round_trips_us = sites_.round_trips_of(round_trips_us());
  const Result<std::vector<std::string>> gathered = bootstrap_.all_gather(own.encoded(), until);
  if (gathered.ok()) return settle(made, gathered.value());
  if (made.ok()) return gathered.status();
  // This rank may blame a peer that failed for the same reason and then left. The bootstrap knows which rank left first.
  if (const Status& first = gathered.status(); first.code() == Code::remote_error && blames_a_peer(made))
    return failure(Code::remote_error, "%s (%s)", std::string(first.text()).c_str(), std::string(made.text()).c_str());
  return {made.code() == Code::aborted ? Code::remote_error : made.code(), std::string(made.text())};
}

// By rank, as the kernel measured them when the connections were made.
std::vector<std::uint32_t> RankConnector::round_trips_us() const {
  std::vector<std::uint32_t> by_rank;
  for (const std::shared_ptr<Connection>& connection : ranks_.connections)
    by_rank.push_back(connection == nullptr ? 0 : connection->round_trip_us());
  if (to_first_host_us_ != 0 && (by_rank.front() == 0 || to_first_host_us_ < by_rank.front()))
    by_rank.front() = to_first_host_us_;
  return by_rank;
}

// All ranks have the same announcements, so they find the same sites.
Status RankConnector::settle(const Status& made, const std::vector<std::string>& texts) {
  std::vector<std::string> outcomes;
  std::vector<std::vector<std::uint32_t>> round_trips_us;
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    Result<FinalAnnouncement> decoded = FinalAnnouncement::decoded(texts[peer]);
    if (!decoded.ok()) return failure(Code::remote_error, "rank %zu: %s", peer, std::string(decoded.status().text()).c_str());
    outcomes.push_back(std::move(decoded.value().outcome));
    round_trips_us.push_back(std::move(decoded.value().round_trips_us));
  }
  SETO_TRY(common_outcome(ranks_.rank, made, outcomes));
  SETO_ASSIGN(const std::string nonsense, sites_.settle(round_trips_us, static_cast<std::uint32_t>(config_.site_round_trip_us)));
  ranks_.tiers = sites_.tiers();
  ranks_.stated_tiers = sites_.stated_tiers();
  ranks_.sites = sites_.sites();
  ranks_.site_names = sites_.names();
  if (ranks_.over_network) ranks_.found_site = sites_.label_of(announced_.rank, ranks_.attempt);
  if (ranks_.rank == 0 && sites_.count() > 1) SETO_LOG_AS(info, (LogOrigin{0, 0}), "%s", text_of(ranks_.sites).c_str());
  if (ranks_.rank == 0 && !nonsense.empty()) SETO_LOG_AS(warn, (LogOrigin{0, 0}), "%s", nonsense.c_str());
  if (ranks_.rank == 0) tell_unmatched(sites_, announced_.all);
  if (ranks_.rank == 0) warn_of_far_hosts(sites_, announced_.all);
  tell_sites();
  limit_pace();
  return {};
}

// Another site may be cut off without any of its processes being lost.
void RankConnector::tell_sites() const {
  const auto& sites = ranks_.sites.of_rank;
  for (std::size_t peer = 0; peer < ranks_.connections.size(); ++peer) {
    const auto& connection = ranks_.connections[peer];
    if (connection == nullptr || connection->control() == nullptr || sites[peer] == sites[announced_.rank]) continue;
    connection->control()->at_site(ranks_.site_names[sites[peer]], config_.link_patience_s * 1'000);
  }
}

// Before any data is sent. A deterministic communicator knows stated sites only, so a limit may have no effect.
void RankConnector::limit_pace() const {
  const std::uint64_t most = sites_.pace_of(announced_.rank);
  if (ranks_.rank == 0 && config_.site_pacing_mbit > 0 && config_.deterministic && !ranks_.sites.stated && ranks_.over_network)
    SETO_LOG_AS(warn, (LogOrigin{0, 0}),
                "SETO_SITE_PACING_MBIT has no effect: with SETO_DETERMINISTIC sites are not found, and SETO_SITE_ID states none");
  for (std::size_t peer = 0; most > 0 && peer < ranks_.connections.size(); ++peer)
    if (ranks_.connections[peer] != nullptr && ranks_.sites.of_rank[peer] != ranks_.sites.of_rank[announced_.rank])
      ranks_.connections[peer]->limit_pace_to_site(most);
}

// A rank takes part in the common rounds even after a failure of its own. So no rank continues alone, and all ranks get the same
// result.
Status RankConnector::connect(Deadline until) {
  SETO_TRY(exchange_announcements(until));
  // The last round needs time after the deadline of the ranks that wait for a peer in vain.
  const Deadline connected = until.sooner_ms(static_cast<std::uint64_t>(until.remaining_ms()) / 10 * 9);
  if (!first_transport_reaches_all()) {
    SETO_TRY(exchange_endpoints(until));
    SETO_TRY(look_for_one_site(connected));
    tell_relays();
  }
  PeerConnections peers(announced_);
  Status made = ranks_.over_network ? Status() : seat_status_;
  if (made.ok()) made = join_peers(peers, connected);
  if (!made.ok() && until.stopped())
    made = failure(Code::invalid_usage, "its init was given up (setoCommAbort or setoCommDestroy)");
  if (!made.ok()) decline(made);
  return agree_on_outcome(made, until);
}

}  // namespace

Result<ConnectedRanks> connect_ranks(Bootstrap& bootstrap, const ConnectSettings& settings, Deadline until) {
  RankConnector connector(bootstrap, settings);
  SETO_TRY(connector.connect(until));
  return connector.take();
}

}  // namespace seto
