#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/topology/graph/topology_graph.h"
#include "src/topology/tiers.h"

namespace seto {

// A checksum of the content of a file; never 0.
std::uint64_t digest_of_content(std::string_view content);

// The statements of a topology file about the sites of a job: the site of each host, and the rates of sites. A site without a
// name states nothing, so that the file of a single machine leaves sites to others.
class StatedSites final {
 public:
  StatedSites() = default;  // no file
  // Rates that no link can have are bounded.
  StatedSites(TopologyGraph graph, std::uint64_t digest);

  // A checksum of the content of the file. 0: there is none.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  // The number of a host in the file, from 1, by its id (SETO_HOST_ID), or where that is empty by its name; 0: it is not there. A
  // name with a domain matches one without, if only one host of the file does.
  [[nodiscard]] std::uint32_t host_of(std::string_view id, std::string_view name) const;
  // The name of the site of a host; empty for a number that no host has.
  [[nodiscard]] std::string site_of(std::uint64_t host) const;
  // The names of the hosts of the file whose numbers are not among these.
  [[nodiscard]] std::vector<std::string> hosts_without(const std::vector<std::uint64_t>& numbers) const;

  // Bytes per second of the uplink and downlink of a site; 0: the file does not say. One direction stands for the other.
  [[nodiscard]] PortRates rates_of(std::string_view site) const;
  // The stated facts of the link from one site to another one.
  [[nodiscard]] LinkFacts between(std::string_view from, std::string_view to) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  [[nodiscard]] std::size_t number_of(std::string_view site) const;

  TopologyGraph graph_;
  std::uint64_t digest_ = 0;
};

}  // namespace seto
