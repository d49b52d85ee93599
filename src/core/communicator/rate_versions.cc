#include "src/core/communicator/rate_versions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/clock.h"
#include "src/base/far_link.h"
#include "src/base/log.h"

namespace seto {
namespace {

// Rank 0 is told at once of a rate that differs by this factor from the one that it was told, else once in this time while
// traffic shows a rate, so that it knows which reports are fresh.
constexpr double kTellRate = 1.1;
constexpr std::uint64_t kTellAgainNs = 1'000'000'000;
// A rate that was measured while the link was full holds for so long; after that its rank reports what the link carries of late.
constexpr std::uint64_t kFullForNs = 1'000'000'000;
// Links that are used at the same time are looked at this often at least: some round trips of the longest ones that matter.
constexpr std::uint64_t kSideBySideNs = 500'000'000;

bool is_close(double one, double other) { return one <= kTellRate * other && other <= kTellRate * one; }
bool is_close(const SiteLinkRate& one, const SiteLinkRate& other) {
  return is_close(one.bytes_per_second, other.bytes_per_second) && is_close(one.round_trip_s, other.round_trip_s);
}

}  // namespace

std::shared_ptr<const PretendedLinks>& PretendedLinks::of_process() {
  static std::shared_ptr<const PretendedLinks> links;
  return links;
}

Status RateVersions::open(const Config& config) {
  const ConnectedRanks& ranks = parts_.members.connected();
  const Sites& sites = ranks.sites;
  const bool is_fixed = config.deterministic || config.calibrate == Calibrate::off || !config.tuning_file.empty();
  if (is_fixed || !ranks.over_network || !sites.rates.empty() || ranks.tiers.widest() != TierKind::world ||
      !CostModel::knows_link(sites))
    return {};
  const auto own = static_cast<std::size_t>(ranks.rank);
  for (std::size_t rank = 0; rank < sites.of_rank.size(); ++rank) {
    const Connection* const connection = ranks.connections[rank].get();
    if (sites.of_rank[rank] == sites.of_rank[own] || connection == nullptr || connection->control() == nullptr) continue;
    if (pretended_ != nullptr || is_far(connection->round_trip_us()))
      far_.push_back({static_cast<Rank>(rank), sites.of_rank[rank]});
  }
  if (ranks.rank == 0) {
    reports_.emplace(sites.links.sites(), ranks.ranks);
    vote_.emplace(ranks.ranks);
  }
  SETO_ASSIGN(std::unique_ptr<MemberMessages> messages,
              MemberMessages::open(ranks, config, [this](Rank from, std::string_view bytes) { receive(from, bytes); }));
  const std::lock_guard lock(mutex_);
  messages_ = std::move(messages);
  return {};
}

void RateVersions::start(const CostModel& constants, const std::optional<InheritedRates>& inherited) {
  const Sites& sites = parts_.members.connected().sites;
  const std::lock_guard lock(mutex_);
  constants_ = constants;
  const bool may_change = messages_ != nullptr && constants.source == CostSource::measured;
  if (may_change && inherited) {
    switch_ = VersionSwitch(inherited->version);
    rates_[inherited->version] = rates_of_part(*inherited, sites);
    use_version(inherited->version);
  } else {
    use_version(0);
  }
  started_ = may_change;
}

// A handler that runs meanwhile finds no messages to send. The registration ends without the mutex, because it waits for
// handlers.
void RateVersions::stop() {
  std::unique_ptr<MemberMessages> ending;
  {
    const std::lock_guard lock(mutex_);
    ending = std::move(messages_);
  }
}

void RateVersions::use_version(std::uint64_t version) {
  version_ = version;
  rates_.erase(rates_.begin(), rates_.lower_bound(version));
  costs_ = constants_;
  costs_.use(with_rates(parts_.members.connected().sites, rates_[version]));
}

std::optional<RateVersions::Known> RateVersions::enter(std::uint64_t operation, bool on_calling_thread) {
  const std::lock_guard lock(mutex_);
  const std::optional<std::uint64_t> version = switch_.version_of(operation);
  if (!version) return std::nullopt;
  if (*version != version_) {
    use_version(*version);
    switch_.enter(operation);
  }
  if (on_calling_thread) limit_.store(switch_.last_like(operation), std::memory_order_relaxed);
  return Known{version_, costs_};
}

RateVersions::Known RateVersions::known() const {
  const std::lock_guard lock(mutex_);
  return {version_, costs_};
}

Sites RateVersions::sites() const {
  const std::lock_guard lock(mutex_);
  const auto rates = rates_.find(version_);
  return with_rates(parts_.members.connected().sites, rates == rates_.end() ? SiteLinkRates() : rates->second);
}

InheritedRates RateVersions::for_part(const std::vector<Rank>& part) const {
  const std::lock_guard lock(mutex_);
  InheritedRates inherited;
  inherited.version = version_;
  if (const auto rates = rates_.find(version_); rates != rates_.end()) inherited.rates = rates->second;
  for (const Rank rank : part)
    inherited.site_of_rank.push_back(parts_.members.connected().sites.of_rank[static_cast<std::size_t>(rank)]);
  return inherited;
}

// ---- measured here ----

RateVersions::Sending RateVersions::sending_to(Rank rank, std::uint64_t now_ns) const {
  if (pretended_ != nullptr) return {static_cast<double>(pretended_->bytes_per_second(rank)), false, 0, now_ns};
  const Connection::SendingRate seen = parts_.members.connection_to(rank)->sending_rate();
  const bool is_fresh = seen.bytes_per_second > 0 && seen.full_ns + kFullForNs >= seen.seen_ns;
  return {static_cast<double>(is_fresh ? seen.bytes_per_second : seen.carried_per_second), !is_fresh, seen.round_trip_us * 1e-6,
          seen.seen_ns};
}

// The rates at which this rank sends to ranks of a site side by side are added up. A link that was seen a while before the others
// was used before them, not beside them.
std::map<std::uint32_t, RateVersions::Sending> RateVersions::sending_to_sites(std::uint64_t now_ns) const {
  std::map<std::uint32_t, Sending> by_site;
  for (const FarRank& far : far_)
    if (const Sending one = sending_to(far.rank, now_ns); one.bytes_per_second > 0)
      by_site[far.site].seen_ns = std::max(by_site[far.site].seen_ns, one.seen_ns);
  for (const FarRank& far : far_) {
    const Sending one = sending_to(far.rank, now_ns);
    const auto site = by_site.find(far.site);
    if (one.bytes_per_second == 0 || site == by_site.end() || one.seen_ns + kSideBySideNs < site->second.seen_ns) continue;
    site->second.bytes_per_second += one.bytes_per_second;
    site->second.is_bound = site->second.is_bound && one.is_bound;
    site->second.round_trip_s = shorter_known(site->second.round_trip_s, one.round_trip_s);
  }
  return by_site;
}

RateVersions::News RateVersions::worth_telling(std::uint64_t now_ns) {
  const std::uint32_t own = parts_.members.connected().sites.of_rank[static_cast<std::size_t>(parts_.members.rank())];
  News news;
  for (const auto& [site, sending] : sending_to_sites(now_ns)) {
    const SiteLinkRate rate{own, site, sending.bytes_per_second, sending.round_trip_s};
    Told& told = told_[site];
    const bool is_news = !sending.is_bound && !is_close(told.rate, rate);
    if (sending.seen_ns == told.seen_ns || (!is_news && now_ns - told.at_ns < kTellAgainNs)) continue;
    told = {rate, now_ns, sending.seen_ns};
    (sending.is_bound ? news.bounds : news.rates).push_back(rate);
  }
  return news;
}

void RateVersions::look() {
  if (far_.empty() || messages_ == nullptr) return;
  const std::uint64_t now = monotonic_ns();
  const News news = worth_telling(now);
  if (parts_.members.rank() != 0) {
    if (!news.bounds.empty()) messages_->send(0, encoded({RateMessageKind::bounds, 0, 0, news.bounds}));
    if (!news.rates.empty()) messages_->send(0, encoded({RateMessageKind::report, 0, 0, news.rates}));
    return;
  }
  const std::lock_guard lock(mutex_);
  take_reports(0, news.bounds, true, now);
  take_reports(0, news.rates, false, now);
}

// ---- agreement ----

void RateVersions::receive(Rank from, std::string_view bytes) {
  const Result<RateMessage> decoded = rate_message_in(bytes);
  if (!decoded.ok()) return parts_.failures.fail(decoded.status(), from);
  const RateMessage& message = decoded.value();
  bool valid = true;
  bool is_own = true;
  {
    const std::lock_guard lock(mutex_);
    if (messages_ == nullptr) return;
    const bool leads = parts_.members.rank() == 0;
    switch (message.kind) {
      case RateMessageKind::report:
      case RateMessageKind::bounds:
        is_own = are_rates_of(from, message.rates);
        if (leads && is_own) take_reports(from, message.rates, message.kind == RateMessageKind::bounds, monotonic_ns());
        break;
      case RateMessageKind::propose:
        if (from == 0) messages_->send(0, encoded({RateMessageKind::answer, message.version, promise(), {}}));
        break;
      case RateMessageKind::answer:
        if (leads) take_answer(from, message.version, message.operation);
        break;
      case RateMessageKind::commit:
        valid = from != 0 || commit(message);
        break;
    }
  }
  if (!is_own)
    parts_.failures.fail(failure(Code::remote_error, "rank %d reports the rate of a link that does not begin at its site", from),
                         from);
  if (!valid)
    parts_.failures.fail(
        failure(Code::remote_error, "rank 0 commits version %llu of the rates between sites against what it agreed",
                static_cast<unsigned long long>(message.version)),
        0);
}

bool RateVersions::are_rates_of(Rank rank, const SiteLinkRates& rates) const {
  const std::uint32_t site = parts_.members.connected().sites.of_rank[static_cast<std::size_t>(rank)];
  return std::all_of(rates.begin(), rates.end(), [site](const SiteLinkRate& rate) { return rate.from == site; });
}

void RateVersions::take_reports(Rank from, const SiteLinkRates& rates, bool are_bounds, std::uint64_t now_ns) {
  if (!reports_) return;
  for (const SiteLinkRate& rate : rates) reports_->add(from, rate, are_bounds, now_ns);
  propose_if_changed(now_ns);
}

// One proposal at a time, and none before an operation has used the last one: so ranks never have many versions ahead of them.
void RateVersions::propose_if_changed(std::uint64_t now_ns) {
  if (!started_ || vote_->is_open() || parts_.failures.failed()) return;
  if (parts_.order.issued() <= switch_.newest_after() && switch_.newest_after() > 0) return;
  const SiteLinkRates& in_force = rates_[switch_.newest()];
  proposed_ = lowest_that_fit(proposal(in_force, reports_->settled(now_ns)));  // all ranks use what the commit can hold
  if (proposed_.empty() || proposed_ == in_force) return;
  const std::uint64_t version = switch_.newest() + 1;
  vote_->begin(version);
  send_to_others({RateMessageKind::propose, version, 0, {}});
  take_answer(0, version, promise());
}

// From the exchange on, the calling thread comes to enter(), which waits for the mutex. It may be about to issue the operation
// for which it looked at the limit before: that one, and all that it can have issued unseen, are below the promise.
std::uint64_t RateVersions::promise() {
  const std::uint64_t before = limit_.exchange(0, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t answer = switch_.promise(parts_.order.issued());
  limit_.store(std::min(before, answer + VersionSwitch::kAhead), std::memory_order_relaxed);
  return answer;
}

void RateVersions::take_answer(Rank from, std::uint64_t version, std::uint64_t issued) {
  if (!vote_->answer(from, version, issued)) return;
  const RateMessage message{RateMessageKind::commit, version, vote_->after(), proposed_};
  send_to_others(message);
  (void)commit(message);
}

bool RateVersions::commit(const RateMessage& message) {
  if (!switch_.commit(message.version, message.operation)) return false;
  rates_[message.version] = message.rates;
  parts_.context.wake();
  if (parts_.members.rank() == 0)
    SETO_LOG_AS(info, (LogOrigin{0, 0}), "rates between sites, version %llu from operation %llu on: %s",
                static_cast<unsigned long long>(message.version), static_cast<unsigned long long>(message.operation + 1),
                text_of(with_rates(parts_.members.connected().sites, message.rates)).c_str());
  return true;
}

void RateVersions::send_to_others(const RateMessage& message) const {
  const std::string bytes = encoded(message);
  for (Rank rank = 1; rank < parts_.members.ranks(); ++rank) messages_->send(rank, bytes);
}

}  // namespace seto
