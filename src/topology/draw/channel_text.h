#pragma once

#include <string>
#include <vector>

#include "src/base/json_writer.h"
#include "src/topology/search/graph_search.h"

namespace seto {

// The rings, trees and rails that search found, for people: hosts with equal devices once, channels of one way in one line.
std::string channels_text(const TopologyGraph& graph, const GraphChannels& channels);
// The same for programs: the key "channels" with hosts, sites and the ring of sites.
void add_channels(JsonWriter& json, const TopologyGraph& graph, const GraphChannels& channels);

// The names of the members of a host: the numbers of its GPUs if each has a number of its own, else their places in the graph.
std::vector<std::string> member_names(const TopologyHost& host);

// The channels of a host that take the same way, in the order of their first ones.
struct ChannelsOfOneWay {
  std::size_t first = 0;
  std::vector<std::size_t> channels;  // the first one included
};
std::vector<ChannelsOfOneWay> different_rings(const FoundChannels& rings);
std::vector<ChannelsOfOneWay> different_trees(const FoundChannels& trees);

// "0 1 2 5": the numbers of channels.
std::string numbers_text(const std::vector<std::size_t>& numbers);
// "0 > 1 2; 1 > 3": each member with its children.
std::string tree_text(const TreeParents& parents, const std::vector<std::string>& names);

}  // namespace seto
