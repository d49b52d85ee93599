#include "src/core/connect/rank_sites.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/config.h"

namespace seto {
namespace {

constexpr double kBytesOfMbit = 1e6 / 8;
constexpr std::uint64_t kMostMbit = 100'000'000;
// Within a site, round trips of hosts are below a millisecond, and stay far below this where the hosts are busy.
constexpr std::uint32_t kFarUs = 5'000;

// Every two ranks that share a context are named.
Status check_contexts(const std::vector<RankAnnouncement>& all) {
  std::map<std::pair<std::string_view, ContextId>, std::uint32_t> users;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    const Place& place = all[rank].place;
    const std::uint32_t user = users.try_emplace({place.process, place.context}, rank).first->second;
    if (user != rank)
      return failure(Code::invalid_usage, "ranks %u and %u use the same context: each rank of a process needs its own", user,
                     rank);
  }
  return {};
}

// The attempt that found a site: its label begins with it.
std::string_view finder_of(std::string_view label) { return label.substr(0, label.find(' ')); }

// One attempt found the sites of all these ranks, so that their labels can be compared.
bool were_found_together(const std::vector<RankAnnouncement>& all) {
  return !all.front().found_site.empty() && std::all_of(all.begin(), all.end(), [&](const RankAnnouncement& one) {
    return finder_of(one.found_site) == finder_of(all.front().found_site);
  });
}

// Names of machines need not be unique, and a site of two far machines would send their data unencrypted and by wrong plans.
Status check_machines(const std::vector<RankAnnouncement>& all) {
  std::map<std::uint64_t, std::size_t> first_of_host;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const RankAnnouncement& one = all[rank];
    if (one.file_host == 0 || !one.site.empty()) continue;
    const std::size_t first = first_of_host.try_emplace(one.file_host, rank).first->second;
    const RankAnnouncement& other = all[first];
    if (one.machine == other.machine || one.machine == 0 || other.machine == 0) continue;
    return failure(Code::invalid_usage,
                   "ranks %zu (%s) and %zu (%s) run on two machines that are one host of SETO_TOPOLOGY_FILE: give each machine a "
                   "SETO_HOST_ID, and use these as names of hosts in the file",
                   first, other.words.c_str(), rank, one.words.c_str());
  }
  return {};
}

// Numbers equal names alike, from 0 in the order of their first ranks. Returns how many there are.
std::uint32_t number(const std::vector<std::string_view>& names, std::vector<std::uint32_t>& numbers) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  numbers.clear();
  for (const std::string_view name : names)
    numbers.push_back(known.try_emplace(name, static_cast<std::uint32_t>(known.size())).first->second);
  return static_cast<std::uint32_t>(known.size());
}

// SETO_HOST_ID, from the identity of a host; empty: it is not set. The file is searched for it in place of the name.
std::string stated_id_of(std::string_view identity) {
  constexpr std::string_view kId = "id=";
  return identity.starts_with(kId) ? std::string(identity.substr(0, identity.rfind(" rank ")).substr(kId.size())) : "";
}

template <class Names>
std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

Tiers tiers_of(const std::vector<std::uint32_t>& host_of, const std::vector<std::uint32_t>& site_of,
               const std::vector<PortRates>& rates) {
  std::vector<Home> homes;
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) homes.push_back({host_of[rank], site_of[rank]});
  Tiers tiers = Tiers::of(homes);
  tiers.take_rates(rates);
  return tiers;
}

}  // namespace

void RankSites::number_sites(const std::vector<std::string_view>& names) {
  sites_.links = SiteLinks(number(names, sites_.of_rank));
}

Result<RankSites> RankSites::of(const std::vector<RankAnnouncement>& all, bool deterministic, StatedSites file) {
  SETO_TRY(check_contexts(all));
  RankSites result;
  std::vector<std::string_view> hosts;
  std::vector<std::string_view> found;
  for (const RankAnnouncement& one : all) {
    hosts.emplace_back(one.place.host);
    found.emplace_back(one.found_site);
    result.stated_.push_back(one.site.empty() ? file.site_of(one.file_host) : one.site);
  }
  const auto has_own_site = [](const RankAnnouncement& one) { return !one.site.empty(); };
  const auto is_empty = [](std::string_view site) { return site.empty(); };
  result.uses_file_ = file.digest() != 0 && std::none_of(result.stated_.begin(), result.stated_.end(), is_empty);
  result.sites_.by_file = result.uses_file_ && !std::all_of(all.begin(), all.end(), has_own_site);
  if (result.uses_file_) SETO_TRY(check_machines(all));
  for (std::size_t rank = 0; rank < all.size() && !result.uses_file_; ++rank) result.stated_[rank] = all[rank].site;
  result.file_ = std::move(file);
  const std::vector<std::string_view> stated(result.stated_.begin(), result.stated_.end());
  result.hosts_ = number(hosts, result.host_of_);
  result.sites_.stated = !std::all_of(stated.begin(), stated.end(), is_empty);
  for (const RankAnnouncement& one : all) {
    const double up = kBytesOfMbit * static_cast<double>(std::min(one.uplink_mbit, kMostMbit));
    const double down = kBytesOfMbit * static_cast<double>(std::min(one.downlink_mbit, kMostMbit));
    result.stated_rates_.push_back({up > 0 ? up : down, down > 0 ? down : up});
    result.pacing_mbit_.push_back(std::min(one.pacing_mbit, kMostMbit));
  }
  const bool found_earlier = !result.sites_.stated && !deterministic && were_found_together(all);
  result.known_ = result.sites_.stated || found_earlier || deterministic;
  result.number_sites(found_earlier ? found : stated);
  if (result.uses_file_) result.take_rates_of_file();
  if (result.sites_.stated) result.sites_.names = result.names();
  return result;
}

// Rates that ranks state themselves hold, not those of the file.
void RankSites::take_rates_of_file() {
  rates_of_file_.resize(stated_.size());
  for (std::size_t rank = 0; rank < stated_.size(); ++rank)
    if (const PortRates rates = file_.rates_of(stated_[rank]); stated_rates_[rank].slower() <= 0 && rates.slower() > 0) {
      stated_rates_[rank] = rates;
      rates_of_file_[rank] = true;
    }
}

std::vector<std::string> RankSites::names() const {
  std::vector<std::string> names;
  for (std::uint32_t site = 0; site < count(); ++site) names.push_back(std::to_string(site));
  for (std::size_t rank = stated_.size(); rank-- > 0;)
    if (!stated_[rank].empty()) names[sites_.of_rank[rank]] = stated_[rank];
  return names;
}

std::string RankSites::why_no_file(const std::vector<RankAnnouncement>& all) const {
  if (file_.digest() == 0 || uses_file_) return {};
  std::set<std::string> lacking;
  bool states_some = false;
  for (const RankAnnouncement& one : all) {
    if (!one.site.empty()) continue;
    const bool states = !file_.site_of(one.file_host).empty();
    states_some = states_some || states;
    if (states) continue;
    const std::string name = one.words.substr(0, one.words.rfind(':'));
    const std::string id = stated_id_of(one.place.host);
    lacking.insert(id.empty() ? name : name + " (SETO_HOST_ID=" + id + ")");
  }
  return "SETO_TOPOLOGY_FILE is not used: it states no named site for " +
         (states_some ? joined(lacking) : "any host of this job") +
         "; add these hosts by name or SETO_HOST_ID, or set SETO_SITE_ID there";
}

// The sites that ranks state hold whatever was measured, and data within them is plain. A wrong name must not pass in silence.
void RankSites::look_for_far_hosts(const HostRoundTrips& round_trips) {
  std::vector<std::size_t> first_of(hosts_);
  for (std::size_t rank = host_of_.size(); rank-- > 0;) first_of[host_of_[rank]] = rank;
  std::map<std::uint32_t, FarHosts> farthest;  // by site
  for (std::uint32_t host = 0; host < hosts_; ++host)
    for (std::uint32_t other = host + 1; other < hosts_; ++other) {
      const std::size_t rank = first_of[host];
      const std::uint32_t round_trip_us = round_trips.between(host, other);
      if (round_trip_us < kFarUs || stated_[rank].empty() || stated_[rank] != stated_[first_of[other]]) continue;
      FarHosts& known = farthest[sites_.of_rank[rank]];
      if (round_trip_us > known.round_trip_us) known = {rank, first_of[other], round_trip_us};
    }
  far_hosts_.clear();
  for (const auto& [site, hosts] : farthest) far_hosts_.push_back(hosts);
}

std::vector<std::string> RankSites::far_within_sites(const std::vector<RankAnnouncement>& all) const {
  std::vector<std::string> lines;
  for (const FarHosts& far : far_hosts_) {
    const bool plain = (all[far.one].tls & ~kTlsWithCertificates) != static_cast<std::uint64_t>(TlsMode::always);
    const bool of_file = all[far.one].site.empty() || all[far.other].site.empty();
    char round_trip[32];
    std::snprintf(round_trip, sizeof round_trip, "%.1f ms", far.round_trip_us * 1e-3);
    lines.push_back("ranks " + std::to_string(far.one) + " and " + std::to_string(far.other) + " state one site, '" +
                    stated_[far.one] + "', but their round trip is " + round_trip + ": " +
                    (plain ? "data between them is not encrypted" : "plans take them for near") + "; give the sites different " +
                    (of_file ? "names in SETO_TOPOLOGY_FILE" : "SETO_SITE_IDs") + (plain ? ", or set SETO_TLS=always" : ""));
  }
  return lines;
}

std::string RankSites::hosts_not_in_job(const std::vector<RankAnnouncement>& all) const {
  if (!sites_.by_file) return {};
  std::vector<std::uint64_t> used;
  for (const RankAnnouncement& one : all) used.push_back(one.file_host);
  const std::vector<std::string> unused = file_.hosts_without(used);
  return unused.empty() ? std::string() : "hosts of SETO_TOPOLOGY_FILE without ranks of this job: " + joined(unused);
}

Tiers RankSites::tiers() const { return tiers_of(host_of_, sites_.of_rank, sites_.rates); }

Tiers RankSites::stated_tiers() const {
  return sites_.stated ? tiers() : tiers_of(host_of_, std::vector<std::uint32_t>(host_of_.size()), {});
}

std::vector<SocketNeed> RankSites::needs_of(std::size_t rank) const {
  std::vector<std::uint32_t> on_host(hosts_);
  std::vector<std::uint32_t> at_site(count());
  bool rates_known = sites_.stated;
  std::vector<PortRates> rates = stated_rates_;
  for (std::size_t one = 0; one < host_of_.size(); ++one) {
    ++on_host[host_of_[one]];
    ++at_site[sites_.of_rank[one]];
    rates_known = rates_known && rates[one].slower() > 0;
    // A site sends no faster than its limit.
    if (pacing_mbit_[one] > 0) rates[one].up = std::min(rates[one].up, kBytesOfMbit * static_cast<double>(pacing_mbit_[one]));
  }
  std::vector<SocketNeed> needs(host_of_.size());
  for (std::size_t peer = 0; peer < needs.size(); ++peer) {
    const std::uint32_t own_site = sites_.of_rank[rank];
    const std::uint32_t site = sites_.of_rank[peer];
    const bool between_sites = sites_.stated && site != own_site;
    needs[peer].sharers =
        between_sites ? std::max(at_site[own_site], at_site[site]) : std::max(on_host[host_of_[rank]], on_host[host_of_[peer]]);
    if (between_sites && rates_known)
      needs[peer].bytes_per_second =
          std::max(std::min(rates[rank].up, rates[peer].down), std::min(rates[peer].up, rates[rank].down));
    if (between_sites && uses_file_) {
      // Both ends count the same: a link may have other figures in each direction.
      LinkFacts out = file_.between(sites_.names[own_site], sites_.names[site]);
      LinkFacts in = file_.between(sites_.names[site], sites_.names[own_site]);
      (void)bound_values(out, "");
      (void)bound_values(in, "");
      const double rate = std::max(out.bytes_per_second.value_or(0), in.bytes_per_second.value_or(0));
      if (rate > 0 && !rates_known) needs[peer].bytes_per_second = rate;
      needs[peer].socket_bytes_per_second =
          std::max(out.socket_bytes_per_second.value_or(0), in.socket_bytes_per_second.value_or(0));
    }
  }
  return needs;
}

std::vector<std::uint32_t> RankSites::round_trips_of(const std::vector<std::uint32_t>& by_rank) const {
  std::vector<std::uint32_t> by_host(hosts_);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::uint32_t& shortest = by_host[host_of_[rank]];
    if (by_rank[rank] != 0 && (shortest == 0 || by_rank[rank] < shortest)) shortest = by_rank[rank];
  }
  if (std::all_of(by_host.begin(), by_host.end(), [](std::uint32_t one) { return one == 0; })) by_host.clear();
  return by_host;
}

void RankSites::find(const HostRoundTrips& round_trips, std::uint32_t limit_us) {
  const FoundSites found = find_sites(round_trips, limit_us);
  for (std::size_t rank = 0; rank < host_of_.size(); ++rank) sites_.of_rank[rank] = found.of_host[host_of_[rank]];
  sites_.links = SiteLinks(found.sites);
  sites_.guessed = found.guessed;
  known_ = found_ = true;
}

// Rates between sites as the file states them. A round trip of the file holds only where none was measured.
std::string RankSites::take_links_of_file() {
  std::string remarks;
  for (std::uint32_t from = 0; from < count(); ++from)
    for (std::uint32_t to = 0; to < count(); ++to) {
      if (from == to) continue;
      LinkFacts link = file_.between(sites_.names[from], sites_.names[to]);
      if (sites_.links.between(from, to).round_trip_s) link.round_trip_s.reset();
      if (!link.known()) continue;
      sites_.link_rates_of_file = sites_.link_rates_of_file || link.bytes_per_second;
      const std::string remark = sites_.links.add({0, from, to, link});
      if (!remark.empty()) remarks.append(remarks.empty() ? "" : "; SETO_TOPOLOGY_FILE, as ").append(remark);
    }
  return remarks;
}

// The ranks of a site share its links, so they must state the same. A site without rates leaves all shares even, which is said.
Result<std::string> RankSites::settle_rates() {
  std::vector<std::size_t> speaker(count());
  for (std::size_t rank = stated_rates_.size(); rank-- > 0;) speaker[sites_.of_rank[rank]] = rank;
  std::vector<PortRates> rates;
  for (const std::size_t rank : speaker) rates.push_back(stated_rates_[rank]);
  for (std::size_t rank = 0; rank < stated_rates_.size(); ++rank) {
    const PortRates& first = rates[sites_.of_rank[rank]];
    if (stated_rates_[rank] == first) continue;
    return failure(
        Code::invalid_usage,
        "SETO_SITE_UPLINK_MBIT and SETO_SITE_DOWNLINK_MBIT are %.10g and %.10g on rank %zu and %.10g and %.10g on rank %zu "
        "of the same site%s: state the same on all ranks of a site",
        first.up / kBytesOfMbit, first.down / kBytesOfMbit, speaker[sites_.of_rank[rank]], stated_rates_[rank].up / kBytesOfMbit,
        stated_rates_[rank].down / kBytesOfMbit, rank,
        uses_file_ ? ", where SETO_TOPOLOGY_FILE states what a rank does not" : "");
  }
  const auto is_known = [](const PortRates& one) { return one.slower() > 0; };
  const auto unknown = std::find_if_not(rates.begin(), rates.end(), is_known);
  if (unknown == rates.end() && count() > 1) {
    sites_.rates = rates;
    // A site sends no faster than its limit, however fast its uplink is.
    for (std::size_t site = 0; site < rates.size(); ++site) {
      sites_.rates_of_file.push_back(uses_file_ && rates_of_file_[speaker[site]]);
      if (const std::uint64_t most = pacing_mbit_[speaker[site]]; most > 0)
        sites_.rates[site].up = std::min(rates[site].up, kBytesOfMbit * static_cast<double>(most));
    }
  }
  if (unknown == rates.end() || std::none_of(rates.begin(), rates.end(), is_known)) return std::string();
  const std::string rank = std::to_string(speaker[static_cast<std::size_t>(unknown - rates.begin())]);
  return "SETO_SITE_UPLINK_MBIT is not set on rank " + rank + " and the other ranks of its site" +
         (uses_file_ ? ", nor does SETO_TOPOLOGY_FILE state the uplink of that site" : "") +
         ", so the rates of the other sites are not used";
}

// Each rank takes an equal share of the limit of its site, so all of them must know the same limit.
Status RankSites::check_pacing() const {
  std::vector<std::size_t> speaker(count());
  for (std::size_t rank = pacing_mbit_.size(); rank-- > 0;) speaker[sites_.of_rank[rank]] = rank;
  for (std::size_t rank = 0; rank < pacing_mbit_.size(); ++rank) {
    const std::size_t first = speaker[sites_.of_rank[rank]];
    if (pacing_mbit_[rank] == pacing_mbit_[first]) continue;
    return failure(Code::invalid_usage,
                   "SETO_SITE_PACING_MBIT is %llu on rank %zu and %llu on rank %zu of the same site: state the same on all ranks "
                   "of a site",
                   static_cast<unsigned long long>(pacing_mbit_[first]), first,
                   static_cast<unsigned long long>(pacing_mbit_[rank]), rank);
  }
  return {};
}

std::uint64_t RankSites::pace_of(std::size_t rank) const {
  if (count() == 1 || pacing_mbit_[rank] == 0) return 0;
  const auto sharers = std::count(sites_.of_rank.begin(), sites_.of_rank.end(), sites_.of_rank[rank]);
  return std::max<std::uint64_t>(1, pacing_mbit_[rank] * std::uint64_t{125'000} / static_cast<std::uint64_t>(sharers));
}

Result<std::string> RankSites::settle(const std::vector<std::vector<std::uint32_t>>& round_trips_us, std::uint32_t limit_us) {
  HostRoundTrips between(hosts_);
  for (std::size_t rank = 0; rank < round_trips_us.size(); ++rank) {
    const std::vector<std::uint32_t>& stated = round_trips_us[rank];
    if (!stated.empty() && stated.size() != hosts_)
      return failure(Code::remote_error, "rank %zu: it states round trips to %zu hosts, but there are %u", rank, stated.size(),
                     hosts_);
    for (std::uint32_t host = 0; host < stated.size(); ++host) between.add(host_of_[rank], host, stated[host]);
  }
  if (!known_ && limit_us > 0) find(between, limit_us);
  std::vector<std::uint32_t> site_of_host(hosts_);
  for (std::size_t rank = host_of_.size(); rank-- > 0;) site_of_host[host_of_[rank]] = sites_.of_rank[rank];
  look_for_far_hosts(between);
  std::uint32_t longest_within_us = 0;
  for (std::uint32_t one = 0; one < hosts_; ++one)
    for (std::uint32_t other = 0; other < one; ++other)
      if (site_of_host[one] == site_of_host[other]) longest_within_us = std::max(longest_within_us, between.between(one, other));
  if (longest_within_us > 0) sites_.longest_within_s = longest_within_us * 1e-6;
  SETO_TRY(check_pacing());
  SETO_ASSIGN(std::string remarks, settle_rates());
  for (std::size_t rank = 0; rank < round_trips_us.size(); ++rank)
    for (std::uint32_t host = 0; host < round_trips_us[rank].size(); ++host) {
      const std::uint32_t round_trip_us = round_trips_us[rank][host];
      if (sites_.of_rank[rank] == site_of_host[host] || round_trip_us == 0) continue;
      const LinkFacts link{.medium = LinkMedium::wide_area, .round_trip_s = round_trip_us * 1e-6, .source = FactSource::measured};
      const std::string remark = sites_.links.add({static_cast<int>(rank), sites_.of_rank[rank], site_of_host[host], link});
      if (!remark.empty()) remarks.append(remarks.empty() ? "" : "; ").append(remark);
    }
  if (const std::string of_file = uses_file_ ? take_links_of_file() : std::string(); !of_file.empty())
    remarks.append(remarks.empty() ? "" : "; ").append("SETO_TOPOLOGY_FILE, as ").append(of_file);
  return remarks;
}

std::string RankSites::label_of(std::size_t rank, AttemptId attempt) const {
  if (!found_) return {};
  char label[64];
  std::snprintf(label, sizeof label, "%016" PRIx64 " %u", static_cast<std::uint64_t>(attempt), sites_.of_rank[rank]);
  return label;
}

}  // namespace seto
