#include "src/topology/graph/topology_graph.h"

namespace seto {

LinkFacts PciDevice::link() const {
  LinkFacts facts{.medium = LinkMedium::pci};
  facts.bytes_per_second = pci_bytes_per_second(generation, lanes);
  facts.source = link_source;
  return facts;
}

LinkFacts& TopologyGraph::between(std::size_t from, std::size_t to) {
  if (between_sites.empty())
    between_sites.assign(sites.size(), std::vector<LinkFacts>(sites.size(), LinkFacts{.medium = LinkMedium::wide_area}));
  return between_sites[from][to];
}

}  // namespace seto
