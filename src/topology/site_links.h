#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/topology/link_facts.h"
#include "src/topology/tiers.h"

namespace seto {

// "round trip 60 ms (measured), rate unknown"
std::string text_of(const LinkFacts& link);
// A checksum of the numbers and their source.
std::uint32_t digest_of(const LinkFacts& link);
// Replaces numbers that no link can have by the nearest possible one; NaN, and a rate or round trip of 0 or less, count as
// unknown. Returns a text that begins with `stated_by` and names the values, or an empty one if nothing was replaced.
std::string bound_values(LinkFacts& link, const std::string& stated_by);

// The links between all pairs of sites, in both directions. Ranks make it from the same statements in the same order, so it is
// equal on all of them.
class SiteLinks {
 public:
  explicit SiteLinks(std::uint32_t sites = 1)
      : sites_(sites), links_(std::size_t{sites} * sites, LinkFacts{.medium = LinkMedium::wide_area}) {}

  [[nodiscard]] std::uint32_t sites() const { return sites_; }
  [[nodiscard]] const LinkFacts& between(std::uint32_t from, std::uint32_t to) const { return links_[index(from, to)]; }

  // The view of one rank of a link.
  struct Statement {
    int rank = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    LinkFacts link;
  };
  // Adds a statement to what is known: the shorter round trip and the higher rate of several statements hold, because a busy
  // machine makes a link look worse and never better. Numbers are bounded. Returns a text that names the rank and the value, or
  // an empty one if nothing was replaced.
  std::string add(const Statement& statement);

  // The longest round trip, the lowest rate, the highest loss and the slowest socket of all links. A value is absent if it is
  // unknown for any pair of different sites.
  [[nodiscard]] LinkFacts worst() const;
  // The pair with the longest round trip.
  struct Pair {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  [[nodiscard]] Pair longest() const;

  // One line for each link: "0>1 round trip 60 ms (measured), rate unknown".
  [[nodiscard]] std::string text() const;
  // A checksum of all numbers.
  [[nodiscard]] std::uint32_t digest() const;

  friend bool operator==(const SiteLinks&, const SiteLinks&) = default;

 private:
  [[nodiscard]] std::size_t index(std::uint32_t from, std::uint32_t to) const { return std::size_t{from} * sites_ + to; }

  std::uint32_t sites_ = 1;
  std::vector<LinkFacts> links_;
};

// The sites of a communicator.
struct Sites {
  std::vector<std::uint32_t> of_rank;  // numbered from 0 in the order of their first ranks
  SiteLinks links;
  std::vector<PortRates> rates;            // by site, as stated; empty unless they are known for every site
  std::optional<double> longest_within_s;  // the longest round trip between hosts of one site that the kernel measured
  bool stated = false;                     // by SETO_SITE_ID or SETO_TOPOLOGY_FILE; else found by round trips
  bool by_file = false;                    // the latter states the site of some rank
  std::vector<bool> rates_of_file;         // by site: whether `rates` has that of the file; empty: none
  bool link_rates_of_file = false;         // the rates of links are
  std::vector<std::string> names;          // by site, as stated; empty if sites were found
  bool guessed = false;  // found, and some round trip is so near the limit that another run may decide otherwise

  [[nodiscard]] bool is_rate_of_file(std::size_t site) const { return site < rates_of_file.size() && rates_of_file[site]; }
};

// The number of the site with the slowest rate; only where rates are stated.
std::size_t slowest_site(const Sites& sites);
// "2 sites found by round trips: 0>1 round trip 60 ms (measured), rate unknown; ..."
std::string text_of(const Sites& sites);

}  // namespace seto
