#include "transports/tcp/connect/tcp_transport.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/thread.h"
#include "src/net/congestion.h"
#include "transports/tcp/connect/redialer.h"
#include "transports/tcp/connect/tcp_sockets.h"
#include "transports/tcp/streams/tcp_members.h"

namespace seto::tcp {
namespace {

// Connections that a context opens at the same time if it has a core to itself: 64 ranks with 150 ms of delay took 4 s instead of
// 66 s. Ranks that share a core gain nothing: 64 ranks on two cores took 2.4 s one by one and 10 s with 16 at a time.
constexpr double kConnectedAtOnce = 16;
// Openings on first use at the same time. Each waits for one peer's control thread, never for another opening.
constexpr std::size_t kOpeningsAtOnce = 8;
// Links whose broken paths are dialed at the same time.
constexpr std::size_t kRedialsAtOnce = 16;

// Endpoint::address(): what this end wants of its sockets, then TcpConnector::address().
struct Wishes {
  std::uint16_t sockets = kAutomaticSockets;
  Resume resume = Resume::automatic;
  std::uint8_t rails = 0;  // that it can have, and whether it may also have them where no site is stated
};
static_assert(sizeof(Wishes) == 4);
constexpr std::uint8_t kPlainEverywhere = 0x80;
struct Address {
  Wishes wishes;
  std::string connector;
};

// Data on rails is not encrypted.
Wishes wishes_of(const Config& config, std::uint32_t most_rails) {
  const std::uint64_t sockets = config.tcp_streams == kAutomatic ? kAutomaticSockets : config.tcp_streams;
  std::uint8_t rails = config.tls == TlsMode::always ? 0 : static_cast<std::uint8_t>(std::min(most_rails, kMostSockets));
  if (config.tls == TlsMode::off && rails > 0) rails |= kPlainEverywhere;
  return {static_cast<std::uint16_t>(sockets), config.resume, rails};
}

Result<Address> address_in(std::string_view text) {
  Address address;
  const bool whole = text.size() > sizeof address.wishes;
  if (whole) std::memcpy(&address.wishes, text.data(), sizeof address.wishes);
  if (!whole || address.wishes.sockets > kMostSockets || address.wishes.resume > Resume::on ||
      (address.wishes.rails & ~kPlainEverywhere) > static_cast<int>(kMostSockets))
    return failure(Code::remote_error, "its TCP address is malformed: %zu bytes, %u sockets", text.size(),
                   address.wishes.sockets);
  address.connector = text.substr(sizeof address.wishes);
  return address;
}

// Both ends have the paths of the one that has fewer.
Result<SocketWish> wish_of(const Address& own, const Address& theirs, const SocketNeed& need) {
  SETO_ASSIGN(const ListenAddress here, decode_listen_address(own.connector));
  SETO_ASSIGN(const ListenAddress there, decode_listen_address(theirs.connector));
  const std::uint32_t routes = std::max(1U, std::min(here.path_count(), there.path_count()));
  return SocketWish{std::max(own.wishes.sockets, theirs.wishes.sockets), need, agree(own.wishes.resume, theirs.wishes.resume),
                    routes};
}

// SETO_PATHS at one end alone has no effect, and the user counts on a backup.
void tell_lack_of_backup(const Address& own, const Address& theirs, const AttemptMember& member, std::uint32_t round_trip_us) {
  const Result<ListenAddress> here = decode_listen_address(own.connector);
  const Result<ListenAddress> there = decode_listen_address(theirs.connector);
  if (!here.ok() || !there.ok() || member.same_site || !is_far(round_trip_us)) return;
  if (here.value().path_count() < 2 || there.value().path_count() > 1) return;
  SETO_LOG(warn, "rank %u states %s: there is no backup to it", member.number,
           there.value().path_count() == 0 ? "no SETO_PATHS" : "one path only in SETO_PATHS");
}

// Once in a process: the others have the same reason, mostly.
void tell_lack_of_rails(const AttemptMember& member, const char* reason) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed))
    SETO_LOG(info, "RDMA is not used to rank %u, but TCP (said for the first such rank only): %s", member.number, reason);
}

// Nothing is prepared: the streams of all communicators use the connections.
class TcpSeat final : public PeerGroupSeat {
 public:
  TcpSeat(Domain& domain, ControlChannels& channels, std::shared_ptr<const Wakeup> wakeup, std::uint32_t ports)
      : domain_(domain), channels_(channels), wakeup_(std::move(wakeup)), ports_(ports) {}

  [[nodiscard]] std::string announcement() const override { return {}; }
  [[nodiscard]] Result<std::shared_ptr<PeerGroup>> join(GroupMembers members) override {
    return TcpMembers::join({std::move(members), &domain_, ports_, wakeup_}, channels_);
  }

 private:
  Domain& domain_;
  ControlChannels& channels_;
  std::shared_ptr<const Wakeup> wakeup_;
  const std::uint32_t ports_;
};

}  // namespace

Result<Endpoint*> TcpTransport::open(OnOutput on_output) {
  if (domain_ != nullptr) return static_cast<Endpoint*>(this);
  const Config& config = *setup_.config;
  SETO_ASSIGN(connector_, TcpConnector::of_process(NetworkSettings::of(config)));
  SETO_ASSIGN(channels_, ControlChannels::of_process(*connector_, {config.heartbeat_ms, config.liveness_timeout_ms}));
  SETO_ASSIGN(std::unique_ptr<Domain> domain, Domain::create());
  if (open_pipes_) {
    SETO_ASSIGN(pipes_, open_pipes_());
  }
  SETO_TRY(domain->use_pipes(pipes_.get()));
  domain_ = std::move(domain);
  openings_ = std::make_shared<WorkThreads>("seto-connect", kOpeningsAtOnce);
  redials_ = std::make_shared<WorkThreads>("seto-redial", kRedialsAtOnce);
  OnUseLinks::accept_on(*connector_);
  domain_->windows().set_limit(config.long_link_memory);
  domain_->use_routes_together(config.paths_use == PathsUse::together);
  domain_->on_output(std::move(on_output));
  return static_cast<Endpoint*>(this);
}

TcpTransport::~TcpTransport() {
  if (domain_ == nullptr) return;
  domain_->close();
  openings_->stop();
  redials_->stop();
}

void TcpTransport::communicator_ended(bool failed) { domain_->hurry(failed); }

std::string TcpTransport::address(const Config& config) const {
  const Wishes wishes = wishes_of(config, pipes_ == nullptr ? 0 : pipes_->rails());
  std::string text(reinterpret_cast<const char*>(&wishes), sizeof wishes);
  return text += connector_->address();
}

std::shared_ptr<void> TcpTransport::admit(const Secret& key) { return std::make_shared<Admission>(connector_->admit(key)); }

// A connection takes about seven round trips, so many are opened at a time, started in the order of members. With that order
// members cannot wait for each other in a circle: of all pairs that are not connected yet, take the first by its smaller member
// and then by the other. Both ends of that pair have started it or are about to.
Status TcpTransport::connect(const Attempt& attempt, Deadline until, Connections& made) {
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t member = 0; member < attempt.members.size(); ++member)
    if (attempt.members[member].wanted) wanted.push_back(member);
  const auto at_once = static_cast<std::size_t>(std::max(1.0, kConnectedAtOnce / attempt.ranks_per_core));
  std::optional<AttemptOverlay> overlay;
  if (attempt.relayed) {
    SETO_ASSIGN(overlay, join_overlay(attempt, at_once));
    SETO_TRY(overlay->connect(until));
  }
  std::shared_ptr<AttemptRails> rails;
  if (pipes_ != nullptr && !wanted.empty())
    rails = AttemptRails::create({attempt.id, attempt.members[attempt.own].number, channels_, domain_, pipes_.get(),
                                  setup_.wakeup, setup_.config->connect});
  std::shared_ptr<OnUseLinks> links;
  if (attempt.on_first_use && !wanted.empty())
    links =
        OnUseLinks::create({attempt.id, attempt.key, attempt.members[attempt.own].number,
                            static_cast<std::uint32_t>(attempt.members.size()), setup_.context, connector_, channels_, domain_,
                            openings_, redials_, setup_.wakeup, attempt.opening_ms, setup_.config->link_patience_s * 1'000});
  return side_by_side(wanted.size(), at_once, [&](std::size_t index, const std::atomic<bool>& hopeless) -> Status {
    const AttemptMember& member = attempt.members[wanted[index]];
    const Deadline end = until.unless(&hopeless);
    const bool now = links == nullptr || member.proved;
    auto channel = overlay ? overlay->channel_to(wanted[index]) : nullptr;
    const auto connection = now ? connect_to(member, attempt, std::move(channel), rails, end)
                                : connect_on_use(member, attempt, std::move(channel), *links, rails, end);
    if (!connection.ok()) return named(member, connection.status());
    made[wanted[index]] = connection.value();
    return {};
  });
}

// The context keeps its part after the attempt, because other contexts of the process may not have joined yet.
Result<AttemptOverlay> TcpTransport::join_overlay(const Attempt& attempt, std::size_t at_once) {
  std::vector<std::string> addresses;
  for (const AttemptMember& member : attempt.members) {
    Result<Address> address = address_in(member.address);
    if (!address.ok()) return named(member, address.status());
    addresses.push_back(std::move(address.value().connector));
  }
  const AttemptOverlay::Setup setup{connector_, channels_, setup_.context, setup_.config->link_patience_s * 1'000, at_once};
  SETO_ASSIGN(AttemptOverlay joined, AttemptOverlay::join(setup, attempt, std::move(addresses)));
  std::shared_ptr<ControlOverlay> before = joined.overlay();  // ends without the lock
  const std::lock_guard lock(overlay_mutex_);
  before.swap(last_overlay_);
  return joined;
}

// Blocks until the peer's context does the same.
Result<std::shared_ptr<TcpConnection>> TcpTransport::connect_to(const AttemptMember& member, const Attempt& attempt,
                                                                std::shared_ptr<ControlChannel> channel,
                                                                const std::shared_ptr<AttemptRails>& rails, Deadline until) {
  SETO_ASSIGN(const Address own, address_in(attempt.members[attempt.own].address));
  SETO_ASSIGN(const Address theirs, address_in(member.address));
  const ContextId context = member.place->context;
  ConnectRequest request{theirs.connector, kPurposeData, setup_.context,  context, attempt.id, 0,
                         attempt.key,      until,        member.same_site};
  SETO_ASSIGN(const SocketWish wish, wish_of(own, theirs, member.need));
  if (wish.routes > 1 && !member.same_site) request.path = 1;
  const std::uint32_t most_rails = rails_with(attempt.members[attempt.own], member);
  std::shared_ptr<LinkRails> link_rails;
  if (rails != nullptr && most_rails > 0) {
    SETO_ASSIGN(const TcpConnector::Plan plan, connector_->plan(request));
    link_rails = rails->add(member.number, plan.calls ? PipeMaker::Role::selects : PipeMaker::Role::follows);
  }
  SETO_ASSIGN(TcpSockets opened, open_tcp_sockets(*connector_, *channels_, request, wish, std::move(channel)));
  tell_lack_of_backup(own, theirs, member, opened.round_trip_us);
  TcpConnection::Parts parts;
  parts.way = way_of(opened.sockets.front().get());
  parts.channel = std::move(opened.channel);
  Link::Setup link;
  link.sockets = std::move(opened.sockets);
  link.routes = opened.routes;
  link.adapts = opened.adapts;
  link.round_trip_us = parts.round_trip_us = opened.round_trip_us;
  link.patience_ms = setup_.config->link_patience_s * 1'000;
  link.session = link_session(attempt.key, attempt.id, setup_.context, context);
  std::shared_ptr<Redialer> redialer;
  const auto sockets = static_cast<std::uint32_t>(link.sockets.size());
  if (link_rails != nullptr) link.rails = wish.rails(most_rails, sockets, link.round_trip_us);
  if (link.rails > 0) {
    link_rails->use(parts.channel);
    link.rail_opener = link_rails;
  }
  link.continues = link.rails > 0 || wish.continues(sockets, link.round_trip_us);
  if (link.continues) {
    SETO_ASSIGN(redialer, Redialer::create({attempt.id, attempt.key, setup_.context, context, theirs.connector, member.same_site,
                                            connector_, domain_, redials_, setup_.wakeup}));
    link.dialer = redialer;
  }
  SETO_ASSIGN(parts.link, domain_->add(std::move(link)));
  if (redialer != nullptr) {
    const std::lock_guard lock(domain_->lock());
    redialer->serve(parts.link);
  }
  parts.wakeup = setup_.wakeup;
  return std::make_shared<TcpConnection>(PeerContext{member.place->process, context, attempt.id}, std::move(parts));
}

Result<std::shared_ptr<TcpConnection>> TcpTransport::connect_on_use(const AttemptMember& member, const Attempt& attempt,
                                                                    std::shared_ptr<ControlChannel> channel, OnUseLinks& links,
                                                                    const std::shared_ptr<AttemptRails>& rails, Deadline until) {
  SETO_ASSIGN(const Address own, address_in(attempt.members[attempt.own].address));
  SETO_ASSIGN(const Address theirs, address_in(member.address));
  const ContextId context = member.place->context;
  const ConnectRequest request{theirs.connector, kPurposeControl, setup_.context, context, attempt.id, 0, attempt.key, until};
  TcpConnection::Parts parts;
  parts.channel = std::move(channel);
  if (parts.channel == nullptr) {
    SETO_ASSIGN(parts.channel, channels_->connect(request));
  }
  parts.channel->ask_kernel([&parts](int descriptor) {
    parts.way = way_of(descriptor);
    parts.round_trip_us = round_trip_us(descriptor);
  });
  SETO_ASSIGN(const SocketWish wish, wish_of(own, theirs, member.need));
  tell_lack_of_backup(own, theirs, member, parts.round_trip_us);
  const std::uint32_t most_rails = rails_with(attempt.members[attempt.own], member);
  SETO_ASSIGN(parts.link, links.add({member.number, context, theirs.connector, wish, parts.round_trip_us, member.same_site,
                                     parts.channel, most_rails, most_rails > 0 ? rails : nullptr}));
  parts.wakeup = setup_.wakeup;
  return std::make_shared<TcpConnection>(PeerContext{member.place->process, context, attempt.id}, std::move(parts));
}

std::uint32_t TcpTransport::rails_with(const AttemptMember& own, const AttemptMember& peer) const {
  const Result<Address> here = address_in(own.address);
  const Result<Address> there = address_in(peer.address);
  if (pipes_ == nullptr || !here.ok() || !there.ok()) return 0;
  const auto count = [](const Address& one) { return static_cast<std::uint32_t>(one.wishes.rails & ~kPlainEverywhere); };
  const std::uint32_t rails = std::min(count(here.value()), count(there.value()));
  if (rails == 0) {
    tell_lack_of_rails(peer, setup_.config->tls == TlsMode::always ? "SETO_TLS=always asks for encryption"
                                                                   : "its process has no port that is up, or may use none");
    return 0;
  }
  const bool plain = peer.same_site || (here.value().wishes.rails & there.value().wishes.rails & kPlainEverywhere) != 0;
  if (!plain)
    tell_lack_of_rails(peer, "data is encrypted between hosts that do not state the same site (SETO_SITE_ID, or SETO_TLS=off)");
  return plain ? rails : 0;
}

std::uint32_t TcpTransport::measure_round_trip(const Attempt& attempt, std::uint32_t member, std::uint32_t near_us,
                                               Deadline until) {
  const AttemptMember& one = attempt.members[member];
  const Result<Address> address = address_in(one.address);
  if (!address.ok()) return 0;
  return connector_->measure_round_trip(
      {address.value().connector, kPurposeProbe, setup_.context, one.place->context, attempt.id, 0, attempt.key, until}, near_us);
}

void TcpTransport::decline(const Attempt& attempt, const Status& reason) {
  connector_->decline(attempt.id, setup_.context, attempt.key, reason);
}

Result<std::unique_ptr<PeerGroupSeat>> TcpTransport::reserve_seat(const GroupSize& size) {
  return std::unique_ptr<PeerGroupSeat>(std::make_unique<TcpSeat>(*domain_, *channels_, setup_.wakeup, ports_of(size.ranks)));
}

}  // namespace seto::tcp
