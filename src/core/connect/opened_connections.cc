#include "src/core/connect/opened_connections.h"

#include <algorithm>
#include <string>

#include "src/base/config_table.h"

namespace seto {
namespace {

// SETO_TCP_STREAMS=auto opens no more than these, unless a stated rate needs them. Before sites are known, all ranks count as near.
constexpr std::uint64_t kFarSockets = 8;

std::string name_of_value(std::uint64_t connect) {
  return connect < std::size(kConnectNames) ? std::string(kConnectNames[connect]) : std::to_string(connect);
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
  const std::uint64_t wish = all.front().connect;
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].connect != wish)
      return failure(Code::invalid_usage, "SETO_CONNECT is '%s' on rank 0 and '%s' on rank %zu: it must be the same on all ranks",
                     name_of_value(wish).c_str(), name_of_value(all[rank].connect).c_str(), rank);
  if (wish != static_cast<std::uint64_t>(Connect::automatic)) return wish == static_cast<std::uint64_t>(Connect::used);
  return most_sockets(all.size(), sites) > kSocketsAtInit;
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
