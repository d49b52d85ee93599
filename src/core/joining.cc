// How the ranks of a new communicator come to share memory.

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/core/bells.h"
#include "src/core/communicator.h"
#include "src/core/introduction.h"
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

// Where all ranks are; wrong on all of them if two share a context.
Result<std::vector<Home>> homes_of(const std::vector<Introduction>& all) {
  std::vector<Home> homes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Introduction& own = all[rank];
    const auto first = [&](auto&& same) {
      return static_cast<std::uint32_t>(std::find_if(all.begin(), all.end(), same) - all.begin());
    };
    homes.push_back({first([&](const Introduction& other) { return other.host == own.host; }),
                     first([&](const Introduction& other) { return other.site == own.site; })});
    const std::uint32_t user =
        first([&](const Introduction& other) { return other.process == own.process && other.context == own.context; });
    if (user != rank)
      return failure(Code::invalid_usage, "rank %zu joins the context of rank %u: ranks of one process need one each", rank,
                     user);
  }
  return homes;
}

}  // namespace

Status Communicator::introduce(Joining& joining) {
  Introduction& own = joining.own;
  own.site = config_.site_id;
  own.context = context_->id();
  own.cores = usable_cores();
  own.identity = random_identity();
  SETO_ASSIGN(own.host, host_identity(config_.host_id));
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  own.process = meetings->address();
  context_->tidy();  // boards of communicators that are gone
  joining.known = context_->known();
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
  const auto on_node = std::count_if(all.begin(), all.end(), [&](const Introduction& one) { return one.host == own.host; });
  context_->expect_ranks_on_node(static_cast<int>(on_node));
  // The second round needs time that is left after the deadline of those who wait in vain.
  const Deadline connected = until.sooner_ms(static_cast<std::uint64_t>(until.remaining_ms()) / 10 * 9);
  joining.attempt = attempt_ = attempt_of(texts.value());
  made = make_circle(joining, connected);
  if (!made.ok() && until.stopped())
    made = failure(Code::invalid_usage, "its init was given up (setoCommAbort or setoCommDestroy)");
  if (!made.ok()) {
    SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
    meetings->decline(joining.attempt, context_->id(), gave_up(rank_, made));
  }
  const Result<std::vector<std::string>> gathered = bootstrap.all_gather(outcome_text(made), until);
  if (gathered.ok()) return common_outcome(rank_, made, gathered.value());
  if (made.ok()) return gathered.status();
  return {made.code() == Code::aborted ? Code::remote_error : made.code(), std::string(made.text())};
}

// What both ends know already, or a new one that both open.
Result<std::shared_ptr<Connection>> Communicator::connect(Rank peer, const Joining& joining, Deadline until) {
  const Introduction& theirs = joining.all[static_cast<std::size_t>(peer)];
  if (theirs.host != joining.own.host)
    return failure(Code::invalid_usage, "rank %d is on another host; transports between hosts are not in this version", peer);
  const PeerAddress address{theirs.process, theirs.context, joining.attempt};
  std::shared_ptr<Connection> known = joining.known.shared_with(address, theirs.offered);
  Result<std::shared_ptr<Connection>> found = known != nullptr ? Result(std::move(known)) : context_->open(address, until);
  if (!found.ok()) return from_peer(peer, found.status());
  if (found.value()->dead()) return from_peer(peer, failure(Code::remote_error, "its process has ended"));
  return found;
}

Status Communicator::make_circle(const Joining& joining, Deadline until) {
  const std::vector<Introduction>& all = joining.all;
  slots::CircleSetup setup;
  setup.own = static_cast<std::uint32_t>(rank_);
  setup.ports = ports_for(ranks_);
  setup.pool = &context_->pool();
  setup.called = "rank";
  connections_.resize(all.size());
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const Introduction& introduction = all[static_cast<std::size_t>(peer)];
    slots::Member member;
    member.segment = context_->segment().segment.data();
    member.segment_size = context_->segment().segment.size();
    member.board = introduction.board;
    member.identity = introduction.identity;
    if (peer != rank_) {
      std::shared_ptr<Connection>& opened = connections_[static_cast<std::size_t>(peer)];
      SETO_ASSIGN(opened, connect(peer, joining, until));
      member.segment = opened->memory();
      member.segment_size = opened->size();
      member.armed = &reinterpret_cast<SegmentHead*>(opened->memory())->armed;
      member.same_process = opened->within_process();
      member.dead = &opened->death();
    }
    setup.members.push_back(member);
  }
  bells_ = std::make_unique<Bells>(connections_);
  setup.doorbell = bells_.get();
  SETO_ASSIGN(circle_, slots::SlotCircle::create(std::move(setup)));
  context_->keep(connections_);
  return {};
}

}  // namespace seto
