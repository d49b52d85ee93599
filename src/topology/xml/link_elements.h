#pragma once

#include <string>

#include "src/base/status.h"
#include "src/topology/graph/topology_graph.h"
#include "src/topology/xml/xml_element.h"

namespace seto {

// Links between sites and hosts, as elements <seto_link> of our own in NCCL's format:
//   <seto_link kind="between" from="0" to="1" bytes_per_second="1.25e+08" round_trip_s="0.06" loss="0.001" source="measured"/>
// The kinds are fabric, uplink and downlink (with site="0"), between, and interconnect (with host="name").

// Reads one into the graph, whose sites and hosts are there.
Status read_link(const XmlElement& element, TopologyGraph& graph);

// Writes every link of these kinds that has a value, each on a line that begins with two spaces.
std::string links_text(const TopologyGraph& graph);

// The shortest text that reads back as the same number.
std::string number_text(double number);

}  // namespace seto
