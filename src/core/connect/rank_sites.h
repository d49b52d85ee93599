#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/far_link.h"
#include "src/base/result.h"
#include "src/core/connect/rank_announcement.h"
#include "src/topology/graph/stated_sites.h"
#include "src/topology/site_discovery.h"
#include "src/topology/site_links.h"
#include "src/topology/tiers.h"

namespace seto {

// The hosts and sites of all ranks of an attempt, both numbered from 0 in the order of their first ranks. All ranks derive the
// same from the same announcements.
class RankSites final {
 public:
  // Fails if two ranks share a context, or if machines of the job cannot be told apart in the file. Sites are those that ranks
  // state, or that the file states for their hosts; else those that an earlier attempt found if one attempt found them for all
  // ranks, else one. `deterministic`: only stated sites count. The file is used if every rank has a site by one of the two.
  static Result<RankSites> of(const std::vector<RankAnnouncement>& all, bool deterministic, StatedSites file = {});

  [[nodiscard]] std::uint32_t hosts() const { return hosts_; }
  [[nodiscard]] std::uint32_t host_of(std::size_t rank) const { return host_of_[rank]; }
  [[nodiscard]] const Sites& sites() const { return sites_; }
  [[nodiscard]] std::uint32_t count() const { return sites_.links.sites(); }
  // Stated, found, or none are to be found.
  [[nodiscard]] bool known() const { return known_; }
  // By site: as its ranks or the file state it, else the number.
  [[nodiscard]] std::vector<std::string> names() const;
  // The site that a rank or the file states for it; empty: neither does.
  [[nodiscard]] const std::string& stated_site(std::size_t rank) const { return stated_[rank]; }
  // For the log: why the topology file is not used; empty: it is, or there is none.
  [[nodiscard]] std::string why_no_file(const std::vector<RankAnnouncement>& all) const;
  // For the log, after settle(): hosts whose ranks state one site, although the round trip between them is that of a link between
  // sites. One line for each such site.
  [[nodiscard]] std::vector<std::string> far_within_sites(const std::vector<RankAnnouncement>& all) const;
  // For the log: the hosts of the file without ranks.
  [[nodiscard]] std::string hosts_not_in_job(const std::vector<RankAnnouncement>& all) const;
  [[nodiscard]] Tiers tiers() const;
  // The tiers without sites that were found by measuring.
  [[nodiscard]] Tiers stated_tiers() const;

  // By rank: what decides the number of sockets between that rank and this one, but the round trip. Both derive the same. Ranks
  // of stated sites share the link between them, others that of their hosts; the rate of a link counts if all sites state theirs.
  // Before settle().
  [[nodiscard]] std::vector<SocketNeed> needs_of(std::size_t rank) const;
  // The own shortest round trips to the ranks of each host in microseconds, 0: unknown; empty if none is known.
  [[nodiscard]] std::vector<std::uint32_t> round_trips_of(const std::vector<std::uint32_t>& by_rank) const;
  // Uses the statements of all ranks: finds sites where none are known and `limit_us` is above 0, and fills in the links. Returns
  // the remarks that a log needs, with the ranks that stated nonsense. A statement with another number of hosts is a failure, and
  // so are different rates or limits of one site.
  Result<std::string> settle(const std::vector<std::vector<std::uint32_t>>& round_trips_us, std::uint32_t limit_us);
  // Bytes per second that this rank may send to ranks of other sites: its share of the limit of its site. 0: no limit. After
  // settle().
  [[nodiscard]] std::uint64_t pace_of(std::size_t rank) const;
  // The site of a rank for RankAnnouncement::found_site; empty unless this attempt found it.
  [[nodiscard]] std::string label_of(std::size_t rank, AttemptId attempt) const;

 private:
  void number_sites(const std::vector<std::string_view>& names);
  void find(const HostRoundTrips& round_trips, std::uint32_t limit_us);
  void take_rates_of_file();
  std::string take_links_of_file();
  Result<std::string> settle_rates();
  Status check_pacing() const;
  void look_for_far_hosts(const HostRoundTrips& round_trips);

  // The two hosts of a stated site that are farthest from each other, by their first ranks.
  struct FarHosts {
    std::size_t one = 0;
    std::size_t other = 0;
    std::uint32_t round_trip_us = 0;
  };

  std::uint32_t hosts_ = 0;
  std::vector<std::uint32_t> host_of_;
  StatedSites file_;
  std::vector<std::string> stated_;         // by rank: its site
  std::vector<PortRates> stated_rates_;     // by rank, 0: unknown
  std::vector<bool> rates_of_file_;         // by rank: whether they are those of the file
  std::vector<std::uint64_t> pacing_mbit_;  // by rank, 0: no limit
  Sites sites_;
  std::vector<FarHosts> far_hosts_;  // at most one for each site
  bool uses_file_ = false;
  bool known_ = false;  // stated, or found earlier
  bool found_ = false;  // by this attempt
};

}  // namespace seto
