#include "src/core/connect/opened_connections.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/base/config_table.h"

namespace seto {
namespace {

// SETO_TCP_STREAMS=auto opens no more than these, unless a stated rate needs them. Before sites are known, all ranks count as near.
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

}  // namespace

Result<bool> opens_on_first_use(const std::vector<RankAnnouncement>& all, const RankSites& sites) {
  SETO_ASSIGN(const std::uint64_t wish, common_value(all, &RankAnnouncement::connect, "SETO_CONNECT", kConnectNames));
  if (wish != static_cast<std::uint64_t>(Connect::automatic)) return wish == static_cast<std::uint64_t>(Connect::used);
  return most_sockets(all.size(), sites) > kSocketsAtInit;
}

// `auto` is off until it was tried in more jobs. A process whose ranks are on several hosts (SETO_TRANSPORT=tcp) or state several
// sites has no one place in an overlay.
Result<Relays> relays_control(const std::vector<RankAnnouncement>& all, const RankSites& sites, bool on_first_use) {
  SETO_ASSIGN(const std::uint64_t wish, common_value(all, &RankAnnouncement::relay, "SETO_CONTROL_RELAY", kControlRelayNames));
  if (!on_first_use || wish != static_cast<std::uint64_t>(ControlRelay::on)) return Relays::no;
  std::unordered_map<std::string_view, std::size_t> processes;  // and their first ranks
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::size_t first = processes.try_emplace(all[rank].place.process, rank).first->second;
    if (sites.host_of(first) != sites.host_of(rank) || sites.sites().of_rank[first] != sites.sites().of_rank[rank])
      return Relays::no;
  }
  return !sites.known() && all.front().near_us > 0 ? Relays::if_one_site : Relays::yes;
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
