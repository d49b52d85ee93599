#include "src/topology/graph/join_graphs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace seto {
namespace {

// The number of the site of this name in the joined graph. What the first part knows about a site holds.
std::size_t site_of(TopologyGraph& joined, const TopologySite& wanted) {
  const auto same =
      std::find_if(joined.sites.begin(), joined.sites.end(), [&](const TopologySite& each) { return each.name == wanted.name; });
  if (same == joined.sites.end()) {
    joined.sites.push_back(wanted);
    return joined.sites.size() - 1;
  }
  for (LinkFacts TopologySite::*link : {&TopologySite::fabric, &TopologySite::uplink, &TopologySite::downlink})
    if (!((*same).*link).known()) (*same).*link = wanted.*link;
  return static_cast<std::size_t>(same - joined.sites.begin());
}

// Gives each host a name of its own.
class Names final {
 public:
  std::string fresh(const std::string& wanted, bool numbered) {
    if (!numbered && !wanted.empty() && taken_.insert(wanted).second) return wanted;
    for (std::size_t& number = last_number_[wanted];;) {
      std::string name = std::to_string(++number);
      if (!wanted.empty()) name = wanted + " " + name;
      if (taken_.insert(name).second) return name;
    }
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, std::size_t> last_number_;  // that was given to a wanted name
};

// Adds hosts and sites of a part; returns the new number of each of its sites.
std::vector<std::size_t> add(TopologyGraph& joined, Names& names, const GraphPart& part) {
  std::vector<std::size_t> sites;
  for (TopologySite site : part.graph.sites) {
    if (!part.site.empty()) site.name = part.site;
    sites.push_back(site_of(joined, site));
  }
  for (const TopologyHost& host : part.graph.hosts)
    for (std::size_t copy = 0; copy < part.copies; ++copy) {
      TopologyHost& made = joined.hosts.emplace_back(host);
      made.site = sites[host.site];
      made.name = names.fresh(host.name, part.copies > 1);
    }
  return sites;
}

}  // namespace

Result<TopologyGraph> join_graphs(std::vector<GraphPart> parts) {
  std::size_t hosts = 0;
  for (const GraphPart& part : parts) {
    if (part.copies < 1 || part.copies > kMostHosts)
      return failure(Code::invalid_argument, "copies: %zu is not one of 1 to %zu", part.copies, kMostHosts);
    if (!part.site.empty() && part.graph.sites.size() > 1)
      return failure(Code::invalid_argument, "site: the file of site %s states %zu sites of its own; give it without a site",
                     part.site.c_str(), part.graph.sites.size());
    hosts += part.graph.hosts.size() * part.copies;
  }
  if (hosts > kMostHosts) return failure(Code::invalid_argument, "%zu hosts; a graph has at most %zu", hosts, kMostHosts);
  // A single host keeps its name, which may be empty.
  if (hosts == 1 && parts.size() == 1 && parts[0].site.empty()) return std::move(parts[0].graph);

  TopologyGraph joined;
  joined.sites.clear();
  Names names;
  std::vector<std::vector<std::size_t>> sites;
  for (const GraphPart& part : parts) sites.push_back(add(joined, names, part));
  if (joined.sites.size() > kMostSites)
    return failure(Code::invalid_argument, "%zu sites; a graph has at most %zu", joined.sites.size(), kMostSites);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& between = parts[i].graph.between_sites;
    for (std::size_t from = 0; from < between.size(); ++from)
      for (std::size_t to = 0; to < between.size(); ++to)
        if (from != to && between[from][to].known() && sites[i][from] != sites[i][to])
          joined.between(sites[i][from], sites[i][to]) = between[from][to];
  }
  if (joined.sites.empty()) joined.sites.resize(1);
  return joined;
}

}  // namespace seto
