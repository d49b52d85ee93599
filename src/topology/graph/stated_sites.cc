#include "src/topology/graph/stated_sites.h"

#include <algorithm>
#include <utility>

#include "src/topology/site_links.h"

namespace seto {
namespace {

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

// "a" and "a.example.com" may be one host, "a.example.com" and "a.example.org" are not.
bool may_be_same(std::string_view one, std::string_view other) {
  const bool one_is_short = one.find('.') == std::string_view::npos;
  const bool other_is_short = other.find('.') == std::string_view::npos;
  return one_is_short != other_is_short && !one.empty() && first_label(one) == first_label(other);
}

}  // namespace

std::uint64_t digest_of_content(std::string_view content) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char byte : content) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return std::max<std::uint64_t>(1, digest);
}

StatedSites::StatedSites(TopologyGraph graph, std::uint64_t digest) : graph_(std::move(graph)), digest_(digest) {
  for (TopologySite& site : graph_.sites) {
    (void)bound_values(site.uplink, "");
    (void)bound_values(site.downlink, "");
  }
}

// An id that the file lacks is no reason to look for the name: machines with ids may have equal names.
std::uint32_t StatedSites::host_of(std::string_view id, std::string_view name) const {
  const std::string_view wanted = id.empty() ? name : id;
  const auto& hosts = graph_.hosts;
  const auto exact = std::find_if(hosts.begin(), hosts.end(), [&](const TopologyHost& host) { return host.name == wanted; });
  if (!wanted.empty() && exact != hosts.end()) return static_cast<std::uint32_t>(exact - hosts.begin()) + 1;
  if (!id.empty()) return 0;
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!may_be_same(hosts[i].name, name)) continue;
    if (found != 0) return 0;
    found = static_cast<std::uint32_t>(i + 1);
  }
  return found;
}

std::string StatedSites::site_of(std::uint64_t host) const {
  if (host == 0 || host > graph_.hosts.size()) return {};
  return graph_.sites[graph_.hosts[static_cast<std::size_t>(host - 1)].site].name;
}

std::vector<std::string> StatedSites::hosts_without(const std::vector<std::uint64_t>& numbers) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph_.hosts.size(); ++i)
    if (std::find(numbers.begin(), numbers.end(), i + 1) == numbers.end()) names.push_back(graph_.hosts[i].name);
  return names;
}

std::size_t StatedSites::number_of(std::string_view site) const {
  if (site.empty()) return kNone;
  for (std::size_t i = 0; i < graph_.sites.size(); ++i)
    if (graph_.sites[i].name == site) return i;
  return kNone;
}

PortRates StatedSites::rates_of(std::string_view site) const {
  const std::size_t number = number_of(site);
  if (number == kNone) return {};
  const TopologySite& one = graph_.sites[number];
  const double up = one.uplink.bytes_per_second.value_or(0);
  const double down = one.downlink.bytes_per_second.value_or(0);
  return {up > 0 ? up : down, down > 0 ? down : up};
}

LinkFacts StatedSites::between(std::string_view from, std::string_view to) const {
  const std::size_t one = number_of(from);
  const std::size_t other = number_of(to);
  LinkFacts link{.medium = LinkMedium::wide_area};
  if (one == kNone || other == kNone || one == other || graph_.between_sites.empty()) return link;
  link = graph_.between_sites[one][other];
  link.age_s.reset();
  link.source = FactSource::file;
  return link;
}

}  // namespace seto
