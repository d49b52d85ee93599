#include "src/core/connect/opened_connections.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/config_table.h"

namespace seto {
namespace {

// SETO_TCP_STREAMS=auto opens no more than these, unless a stated rate needs them. Before sites are known, all ranks count as
// near.
constexpr std::uint64_t kFarSockets = 8;

template <std::size_t count>
std::string name_of_value(std::uint64_t value, const std::string_view (&names)[count]) {
  return value < count ? std::string(names[value]) : std::to_string(value);
}

// The value of a setting that all ranks must share.
Result<std::uint64_t> common_value(const std::vector<RankAnnouncement>& all, std::uint64_t RankAnnouncement::*value,
                                   const char* setting, const auto& names) {
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].*value != all.front().*value)
      return failure(Code::invalid_usage, "%s is '%s' on rank 0 and '%s' on rank %zu: it must be the same on all ranks", setting,
                     name_of_value(all.front().*value, names).c_str(), name_of_value(all[rank].*value, names).c_str(), rank);
  return all.front().*value;
}

// The data sockets of the rank that would open most.
std::uint64_t most_sockets(std::size_t ranks, const RankSites& sites) {
  std::vector<std::uint64_t> of_host(sites.hosts());
  std::vector<std::uint64_t> of_site(sites.count());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ++of_host[sites.host_of(rank)];
    ++of_site[sites.sites().of_rank[rank]];
  }
  std::uint64_t most = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t near = of_site[sites.sites().of_rank[rank]];
    const std::uint64_t local = std::min(near, of_host[sites.host_of(rank)]);
    most = std::max(most, near - local + kFarSockets * (ranks - near));
  }
  return most;
}

// Ranks that set nothing agree with ranks that switch it off.
Result<ControlRelay> common_relay(const std::vector<RankAnnouncement>& all) {
  const auto is = [](ControlRelay wish) {
    return [wish](const RankAnnouncement& one) { return one.relay == static_cast<std::uint64_t>(wish); };
  };
  const auto agrees = [&](const RankAnnouncement& one) { return is(ControlRelay::off)(one) || is(ControlRelay::automatic)(one); };
  if (!std::all_of(all.begin(), all.end(), agrees))
    SETO_TRY(common_value(all, &RankAnnouncement::relay, "SETO_CONTROL_RELAY", kControlRelayNames).status());
  if (std::any_of(all.begin(), all.end(), is(ControlRelay::off))) return ControlRelay::off;
  return static_cast<ControlRelay>(all.front().relay);
}

struct RelayFacts {
  std::size_t processes = 0;
  bool on_first_use = false;
  bool places = false;       // each process is on one host and at one site
  bool finds_sites = false;  // where none are stated
};

// A process whose ranks are on several hosts (SETO_TRANSPORT=tcp) or state several sites has no one place in an overlay. `auto`
// wants all processes to be near each other, because a link without a channel of its own takes its peer for near.
const char* why_not(ControlRelay wish, const RankSites& sites, const RelayFacts& facts) {
  if (wish != ControlRelay::on && wish != ControlRelay::automatic) return "SETO_CONTROL_RELAY is off";
  if (!facts.on_first_use) return "data connections open at init";
  if (!facts.places) return "a process has ranks of several hosts or sites";
  if (wish == ControlRelay::on) return "";
  if (facts.processes < kProcessesThatRelay) return "the processes are few";
  if (sites.count() > 1) return "there are several sites";
  if (!sites.sites().stated && !facts.finds_sites) return "sites are neither stated nor found";
  return "";
}

}  // namespace

Result<bool> opens_on_first_use(const std::vector<RankAnnouncement>& all, const RankSites& sites) {
  SETO_ASSIGN(const std::uint64_t wish, common_value(all, &RankAnnouncement::connect, "SETO_CONNECT", kConnectNames));
  if (wish != static_cast<std::uint64_t>(Connect::automatic)) return wish == static_cast<std::uint64_t>(Connect::used);
  return most_sockets(all.size(), sites) > kSocketsAtInit;
}

Result<RelayChoice> relays_control(const std::vector<RankAnnouncement>& all, const RankSites& sites, bool on_first_use) {
  SETO_ASSIGN(const ControlRelay wish, common_relay(all));
  RelayChoice choice;
  bool places = true;
  std::unordered_map<std::string_view, std::size_t> processes;  // and their first ranks
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::size_t first = processes.try_emplace(all[rank].place.process, rank).first->second;
    places = places && sites.host_of(first) == sites.host_of(rank) && sites.sites().of_rank[first] == sites.sites().of_rank[rank];
  }
  choice.processes = processes.size();
  choice.tell = wish == ControlRelay::on || (wish == ControlRelay::automatic && choice.processes >= kProcessesThatRelay);
  const bool finds_sites = std::all_of(all.begin(), all.end(), [](const RankAnnouncement& one) { return one.near_us > 0; });
  choice.why = why_not(wish, sites, {choice.processes, on_first_use, places, finds_sites});
  if (*choice.why == '\0') choice.relays = !sites.known() && finds_sites ? Relays::if_one_site : Relays::yes;
  return choice;
}

std::vector<bool> proved_by(std::size_t rank, const RankSites& sites) {
  const std::vector<std::uint32_t>& site_of = sites.sites().of_rank;
  std::vector<bool> proved(site_of.size());
  const auto first_of = [&](std::uint32_t site) {
    return static_cast<std::size_t>(std::find(site_of.begin(), site_of.end(), site) - site_of.begin());
  };
  if (first_of(site_of[rank]) != rank) return proved;
  for (std::uint32_t site = 0; site < sites.count(); ++site)
    if (site != site_of[rank]) proved[first_of(site)] = true;
  return proved;
}

}  // namespace seto
