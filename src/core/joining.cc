// How the ranks of a new communicator come to be connected.

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include "src/base/thread.h"
#include "src/core/bells.h"
#include "src/core/communicator/communicator.h"
#include "src/core/encounters.h"
#include "src/core/connect/rank_announcement.h"
#include "src/core/connect/mixed_streams.h"
#include "src/core/party.h"
#include "src/net/token.h"
#include "src/topology/host_identity.h"
#include "transports/slots/slot_circle.h"

namespace seto {

// What a rank brings to the making of a communicator, and what it hears from all.
struct Joining {
  Introduction own;
  KnownConnections known;  // as the introduction says
  std::vector<Introduction> all;
  AttemptId attempt = 0;
  std::shared_ptr<Party> party;  // the ranks of this process
  // Where not all are on one node:
  std::vector<DoorNotice> doors;
  std::uint32_t sockets = 1;  // of each link
};

namespace {

constexpr std::uint32_t kFewestPorts = 16;

// A ring uses two channels a hop between neighbours; nothing uses more.
std::uint32_t ports_for(int ranks) { return std::max(kFewestPorts, std::bit_ceil(static_cast<std::uint32_t>(2 * ranks))); }

slots::BoardLayout layout_for(int ranks) { return {static_cast<std::uint32_t>(ranks), ports_for(ranks)}; }

std::uint64_t random_identity() {
  const Token token = random_token();
  std::uint64_t identity = 0;
  std::memcpy(&identity, token.data(), sizeof identity);
  return identity | 1;
}

// What a peer said of why it gave up is said as it came; everything else needs its rank.
Status from_peer(Rank rank, const Status& reason) {
  if (reason.code() == Code::aborted) return reason;
  return {reason.code(), "rank " + std::to_string(rank) + ": " + std::string(reason.text())};
}

bool blames_a_peer(const Status& status) {
  return status.code() == Code::remote_error || status.code() == Code::timeout || status.code() == Code::aborted;
}

// Where all ranks are; wrong on all of them if two share a context.
Result<std::vector<Home>> homes_of(const std::vector<Introduction>& all) {
  std::vector<Home> homes;
  std::unordered_map<std::string_view, std::uint32_t> hosts;  // first rank of each
  std::unordered_map<std::string_view, std::uint32_t> sites;
  std::map<std::pair<std::string_view, ContextId>, std::uint32_t> users;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    const Introduction& own = all[rank];
    homes.push_back({hosts.try_emplace(own.host, rank).first->second, sites.try_emplace(own.site, rank).first->second});
    const std::uint32_t user = users.try_emplace({own.process, own.context}, rank).first->second;
    if (user != rank)
      return failure(Code::invalid_usage, "rank %u joins the context of rank %u: ranks of one process need one each", rank, user);
  }
  return homes;
}

bool several_nodes(const std::vector<Introduction>& all) {
  return std::any_of(all.begin(), all.end(), [&](const Introduction& one) { return one.host != all.front().host; });
}

std::string place_of_process() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown:" + std::to_string(getpid());
  return std::string(name.data()) + ":" + std::to_string(getpid());
}

Rank first_rank_of(const Household& household, const std::vector<Introduction>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Introduction& one) {
    return one.process == household.process && one.context == household.contexts.front();
  });
  return static_cast<Rank>(found - all.begin());
}

// The policy within a site: one. A thread moves no more over two (1 MiB 282 us instead of 223, 64 MiB 18.0 ms instead of 18.6,
// loopback); a card with a queue for each stream is not measured yet.
constexpr std::uint32_t kSiteSockets = 1;
// Ranks over TCP that are connected at the same time, by a rank that has its core to itself: 64 ranks 150 ms apart are some 4 s
// instead of 66. Those that share a core gain nothing (64 on two cores: 2.4 s one by one, 10 s with 16 each).
constexpr double kConnectedAtOnce = 16;

}  // namespace

Status Communicator::introduce(Joining& joining) {
  Introduction& own = joining.own;
  own.site = config_.site_id;
  own.context = context_->id();
  own.cores = usable_cores();
  own.machine = machine_number();
  own.machine_cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  own.identity = random_identity();
  SETO_ASSIGN(own.host, host_identity(config_.host_id));
  if (config_.transport == Medium::tcp) own.host += " rank " + std::to_string(rank_);
  own.place = place_of_process();
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  own.process = meetings->address();
  context_->tidy();  // boards of communicators that are gone
  joining.known = context_->known(own.host);
  own.offered = joining.known.offered();
  const slots::BoardLayout layout = layout_for(ranks_);
  SETO_ASSIGN(board_.offset, context_->pool().reserve(layout.size()));
  board_.size = layout.size();
  own.board = board_.offset;
  slots::put_identity(context_->segment().segment.data() + board_.offset, layout, own.identity);
  return {};
}

// All ranks go through both rounds whatever has failed on one of them, so that nobody goes on alone and all hear the same.
Status Communicator::meet(Bootstrap& bootstrap, Deadline until) {
  Joining joining;
  Introduction& own = joining.own;
  const std::vector<Introduction>& all = joining.all;
  Status made = introduce(joining);
  own.outcome = outcome_text(made);
  const Result<std::vector<std::string>> texts = bootstrap.all_gather(own.encoded(), until);
  if (!texts.ok()) return made.ok() ? texts.status() : made;
  SETO_ASSIGN(joining.all, introductions_of(texts.value()));
  std::vector<std::string> outcomes;
  for (const Introduction& one : all) outcomes.push_back(one.outcome);
  SETO_TRY(common_outcome(rank_, made, outcomes));
  SETO_ASSIGN(const std::vector<Home> homes, homes_of(all));
  tiers_ = Tiers::of(homes);
  crowding_ = crowding(all);
  context_->expect_crowding(crowding_at(own, all));
  // The second round needs time that is left after the deadline of those who wait in vain.
  const Deadline connected = until.sooner_ms(static_cast<std::uint64_t>(until.remaining_ms()) / 10 * 9);
  joining.attempt = attempt_ = attempt_of(texts.value());
  if (several_nodes(all)) SETO_TRY(exchange_doors(bootstrap, joining, until));
  made = make_circle(joining, connected);
  if (!made.ok() && until.stopped())
    made = failure(Code::invalid_usage, "its init was given up (setoCommAbort or setoCommDestroy)");
  if (!made.ok()) {
    SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
    meetings->decline(joining.attempt, context_->id(), gave_up(rank_, made));
    if (door_ != nullptr) door_->decline(joining.attempt, context_->id(), key_, gave_up(rank_, made));
  }
  const Result<std::vector<std::string>> gathered = bootstrap.all_gather(outcome_text(made), until);
  if (gathered.ok()) return common_outcome(rank_, made, gathered.value());
  if (made.ok()) return gathered.status();
  // Who blames a peer may blame one that has given up for the same reason, and is gone; the bootstrap knows who was gone first.
  if (const Status& first = gathered.status(); first.code() == Code::remote_error && blames_a_peer(made))
    return failure(Code::remote_error, "%s (%s)", std::string(first.text()).c_str(), std::string(made.text()).c_str());
  return {made.code() == Code::aborted ? Code::remote_error : made.code(), std::string(made.text())};
}

// Ranks of several nodes: how each is reached over TCP, and the secret with which they know each other. Jobs of one node never
// listen to a network.
Status Communicator::exchange_doors(Bootstrap& bootstrap, Joining& joining, Deadline until) {
  DoorNotice own;
  Status made;
  const Result<FrontDoor*> door = FrontDoor::of_process({config_.interface, config_.ports});
  if (door.ok()) {
    door_ = door.value();
    own.door = door_->address();
  } else {
    made = door.status();
  }
  const Secret* const known = bootstrap.secret();
  if (known == nullptr && rank_ == 0) own.secret = Secret::random().bytes();
  own.sockets = config_.tcp_streams == kAutomatic ? kSiteSockets : static_cast<std::uint32_t>(config_.tcp_streams);
  own.outcome = outcome_text(made);
  SETO_ASSIGN(const std::vector<std::string> texts, bootstrap.all_gather(own.encoded(), until));
  std::vector<std::string> outcomes;
  for (std::size_t peer = 0; peer < texts.size(); ++peer) {
    Result<DoorNotice> notice = DoorNotice::decoded(texts[peer]);
    if (!notice.ok()) return failure(Code::remote_error, "rank %zu: %s", peer, std::string(notice.status().text()).c_str());
    joining.doors.push_back(std::move(notice).value());
    outcomes.push_back(joining.doors.back().outcome);
    joining.sockets = std::max(joining.sockets, joining.doors.back().sockets);
  }
  SETO_TRY(common_outcome(rank_, made, outcomes));
  if (known != nullptr) {
    key_ = known->derive("communicator");
  } else {
    const std::string& proposed = joining.doors.front().secret;
    if (proposed.size() != Secret::kSize) return failure(Code::remote_error, "rank 0 proposed no secret for the job");
    std::array<std::uint8_t, Secret::kSize> bytes;
    std::copy(proposed.begin(), proposed.end(), bytes.begin());
    key_ = Secret(bytes);
  }
  admission_ = door_->admit(key_);
  return {};
}

// Of each other process of the machine one rank of this one meets all contexts at once. All are called first; then they are met
// in an order that all share, or they would wait for each other in a circle. Who waits for this rank to bring them hears of a
// failure at once.
Status Communicator::meet_neighbours(Joining& joining, Deadline until) {
  const auto guests = std::count_if(joining.all.begin(), joining.all.end(), [&](const Introduction& one) {
    return one.process == joining.own.process && one.host == joining.own.host;
  });
  joining.party = Party::of_process(joining.attempt, static_cast<std::size_t>(guests), until);
  std::vector<Neighbour::Introduced> ours = encounters(joining.all, joining.own, joining.attempt);
  std::erase_if(ours, [&](const Neighbour::Introduced& one) { return one.own.contexts.front() != context_->id(); });
  if (ours.empty()) return {};
  const Result<Heartbeats*> heartbeats = context_->beat();
  std::vector<Result<Neighbour::Approach>> approaches;
  for (const Neighbour::Introduced& one : ours)
    approaches.push_back(heartbeats.ok() ? Neighbour::approach(one, until) : heartbeats.status());
  Status outcome = heartbeats.ok() ? Status() : heartbeats.status();
  const auto meet_one = [&](Result<Neighbour::Approach>& approach) -> Result<Connections> {
    SETO_TRY(outcome);
    SETO_ASSIGN(Neighbour::Approach arrived, std::move(approach));
    return Neighbour::meet(std::move(arrived), *heartbeats.value());
  };
  for (std::size_t index = 0; index < ours.size(); ++index) {
    const Result<Connections> met = meet_one(approaches[index]);
    joining.party->bring(ours[index].theirs.process, met);
    if (outcome.ok() && !met.ok()) outcome = from_peer(first_rank_of(ours[index].theirs, joining.all), met.status());
  }
  return outcome;
}

// What both ends know already, or a new one that both open.
Result<std::shared_ptr<Connection>> Communicator::connect(Rank peer, const Joining& joining, Deadline until) {
  const Introduction& theirs = joining.all[static_cast<std::size_t>(peer)];
  const PeerAddress address{theirs.process, theirs.context, joining.attempt};
  Result<std::shared_ptr<Connection>> found = joining.known.shared_with(address, theirs.offered);
  if (found.value() == nullptr) {
    if (theirs.host != joining.own.host)
      found = context_->open(address, {joining.doors[static_cast<std::size_t>(peer)].door, key_, joining.sockets}, until);
    else if (theirs.process == joining.own.process)
      found = Connection::within(address);
    else if (acquainted(joining.own, theirs))
      found = failure(Code::remote_error, "the connection of earlier communicators to it has ended");
    else
      found = joining.party->connection_to(address, until);
  }
  if (!found.ok()) return from_peer(peer, found.status());
  if (found.value()->dead()) return from_peer(peer, failure(Code::remote_error, "%s", found.value()->why_dead().c_str()));
  return found;
}

// Those of this host are there by now. The others take some seven round trips each: many at a time, begun in the order of the
// ranks. That order keeps ranks from waiting for each other in a circle: of the pairs that are not connected yet the first, by
// its smaller rank and then by the other, is under way at both ends or about to be.
Status Communicator::connect_all(const Joining& joining, Deadline until) {
  connections_.resize(joining.all.size());
  std::vector<Rank> far;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    if (joining.all[static_cast<std::size_t>(peer)].host != joining.own.host) {
      far.push_back(peer);
    } else {
      SETO_ASSIGN(connections_[static_cast<std::size_t>(peer)], connect(peer, joining, until));
    }
  }
  const auto at_once = static_cast<std::size_t>(std::max(1.0, kConnectedAtOnce / crowding_));
  return side_by_side(far.size(), at_once, [&](std::size_t index, const std::atomic<bool>& hopeless) -> Status {
    SETO_ASSIGN(connections_[static_cast<std::size_t>(far[index])], connect(far[index], joining, until.unless(&hopeless)));
    return {};
  });
}

Status Communicator::make_circle(Joining& joining, Deadline until) {
  places_.clear();
  for (const Introduction& one : joining.all) places_.push_back(one.place);
  SETO_TRY(meet_neighbours(joining, until));
  SETO_TRY(connect_all(joining, until));
  JoinedCircle::Setup joined;
  for (std::uint32_t rank = 0; rank < joining.all.size(); ++rank)
    if (joining.all[rank].host == joining.own.host) joined.node.push_back(rank);
  std::unique_ptr<slots::SlotCircle> near;
  if (joined.node.size() > 1 || ranks_ == 1) {
    SETO_ASSIGN(near, make_near_circle(joining, joined.node));
  }
  if (joined.node.size() == joining.all.size()) {
    circle_ = std::move(near);
  } else {
    joined.near = std::move(near);
    SETO_ASSIGN(joined.far, make_far_ranks(joining));
    circle_ = std::make_unique<JoinedCircle>(std::move(joined));
  }
  context_->keep(connections_, joining.own.host);
  return {};
}

Result<std::unique_ptr<slots::SlotCircle>> Communicator::make_near_circle(const Joining& joining,
                                                                          const std::vector<std::uint32_t>& node) {
  slots::CircleSetup setup;
  setup.ports = ports_for(ranks_);
  setup.pool = &context_->pool();
  setup.called = "rank";
  setup.numbers = node;
  Connections others;
  for (const std::uint32_t rank : node) {
    const Introduction& introduction = joining.all[rank];
    const std::shared_ptr<Connection>& opened = connections_[rank];
    slots::Member member;
    member.segment = context_->segment().segment.data();
    member.segment_size = context_->segment().segment.size();
    member.board = introduction.board;
    member.identity = introduction.identity;
    if (opened == nullptr) {
      setup.own = static_cast<std::uint32_t>(setup.members.size());
    } else {
      member.segment = opened->memory();
      member.segment_size = opened->size();
      member.armed = &reinterpret_cast<SegmentHead*>(opened->memory())->armed;
      member.same_process = opened->within_process();
      member.dead = &opened->death();
    }
    setup.members.push_back(member);
    others.push_back(opened);
  }
  bells_ = std::make_unique<Bells>(std::move(others));
  setup.doorbell = bells_.get();
  return slots::SlotCircle::create(std::move(setup));
}

Result<std::unique_ptr<RemoteRanks>> Communicator::make_far_ranks(const Joining& joining) {
  RemoteRanks::Setup setup;
  setup.own = static_cast<std::uint32_t>(rank_);
  setup.attempt = joining.attempt;
  for (const auto& connection : connections_)
    setup.connections.push_back(connection != nullptr && connection->link() != nullptr ? connection : nullptr);
  SETO_ASSIGN(setup.domain, context_->domain());
  setup.wake = [context = context_.get()] { context->wake(); };
  SETO_ASSIGN(Wires* const wires, Wires::of_process(*door_, liveness_of(config_)));
  return RemoteRanks::create(std::move(setup), *wires);
}

}  // namespace seto
