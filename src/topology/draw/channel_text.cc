#include "src/topology/draw/channel_text.h"

#include <algorithm>
#include <set>

#include "src/topology/draw/number_words.h"
#include "src/topology/graph/graph_views.h"

namespace seto {
namespace {

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string text;
  (text.append(parts), ...);
  return text;
}

std::string host_name(const TopologyHost& host) { return host.name.empty() ? "without a name" : host.name; }

std::string heading(const char* what, const FoundChannels& found) {
  const std::size_t count = found.channels.size();
  std::string words = joined(std::to_string(count), " ", what, count == 1 ? "" : "s", " over ", name_of(found.worst_hop), ", ",
                             rate_words(found.channel_bytes_per_second));
  if (count > 1) words += joined(" each, ", rate_words(found.bytes_per_second()), " in all");
  return found.is_fallback ? words + " (search found no better one within its budget)" : words;
}

// The first member is the lowest one, so that two rings of one way are equal.
RingOrder from_lowest(RingOrder ring) {
  std::rotate(ring.begin(), std::min_element(ring.begin(), ring.end()), ring.end());
  return ring;
}

template <class Canonical>
std::vector<ChannelsOfOneWay> different(const FoundChannels& found, const Canonical& canonical) {
  std::vector<ChannelsOfOneWay> ways;
  for (std::size_t i = 0; i < found.channels.size(); ++i) {
    const auto same = std::find_if(ways.begin(), ways.end(), [&](const ChannelsOfOneWay& way) {
      return canonical(found.channels[way.first]) == canonical(found.channels[i]);
    });
    if (same == ways.end())
      ways.push_back({i, {i}});
    else
      same->channels.push_back(i);
  }
  return ways;
}

std::string port_name(const PortPlace& place) { return place.port->name.empty() ? "a port without a name" : place.port->name; }

const char* distance_words(PciDistance distance) {
  switch (distance) {
    case PciDistance::same_device:
      return "on the device of";
    case PciDistance::one_switch:
      return "under one PCI switch with";
    case PciDistance::several_switches:
      return "under PCI switches with";
    case PciDistance::same_node:
      return "on the NUMA node of";
    case PciDistance::other_node:
      break;
  }
  return "on another NUMA node than";
}

// Hosts with equal devices once.
class ChannelText final {
 public:
  ChannelText(const TopologyGraph& graph, const GraphChannels& channels) : graph_(graph), channels_(channels) {}

  std::string write() {
    text_ = "rings, trees and rails that a search found:\n";
    for (std::size_t host = 0; host < graph_.hosts.size(); ++host)
      if (channels_.like[host] == host) this->host(host);
    for (std::size_t site = 0; site < graph_.sites.size(); ++site) this->site(site);
    order();
    return std::move(text_);
  }

 private:
  void line(std::size_t depth, const std::string& words) { text_.append(2 * depth, ' ').append(words).append("\n"); }

  void host(std::size_t host) {
    const HostChannels& found = channels_.hosts[host];
    const auto more = std::count(channels_.like.begin(), channels_.like.end(), host) - 1;
    line(1, joined("host ", host_name(graph_.hosts[host]), more > 0 ? joined(" and ", std::to_string(more), " like it:") : ":"));
    const std::vector<std::string> names = member_names(graph_.hosts[host]);
    if (names.size() > 1) {
      line(2, heading("ring", found.rings));
      for (const ChannelsOfOneWay& way : different_rings(found.rings)) {
        std::string words = joined("channels ", numbers_text(way.channels), ": GPUs");
        for (const int member : found.rings.channels[way.first])
          words.append(" ").append(names[static_cast<std::size_t>(member)]);
        line(3, words);
      }
      line(2, heading("tree", found.trees));
      for (const ChannelsOfOneWay& way : different_trees(found.trees))
        line(3, joined("channels ", numbers_text(way.channels), ": GPUs ", tree_text(found.trees.channels[way.first], names)));
    }
    rails(graph_.hosts[host], found, names);
  }

  void rails(const TopologyHost& host, const HostChannels& found, const std::vector<std::string>& names) {
    const std::vector<PortPlace> ports = ports_of(host);
    if (found.rails.empty()) line(2, "no port that channels could use");
    for (std::size_t rail = 0; rail < found.rails.size(); ++rail) {
      const Rail& each = found.rails[rail];
      std::string words = joined("rail ", std::to_string(rail), ": ", port_name(ports[each.port]));
      if (each.bytes_per_second > 0) words.append(", ").append(rate_words(each.bytes_per_second));
      if (!names.empty())
        words += joined(", ", distance_words(each.distance), " GPU ", names[static_cast<std::size_t>(each.member)]);
      line(2, words);
    }
  }

  void site(std::size_t site) {
    const SiteChannels& found = channels_.sites[site];
    if (found.hosts.size() < 2) return;
    std::string words = joined("site ", site_name(graph_, site), ": rings pass hosts");
    constexpr std::size_t kMostNames = 16;
    for (std::size_t i = 0; i < std::min(kMostNames, found.hosts.size()); ++i)
      words.append(" ").append(host_name(graph_.hosts[found.hosts[i]]));
    if (found.hosts.size() > kMostNames) words += joined(" and ", std::to_string(found.hosts.size() - kMostNames), " more");
    const bool known = found.ring_bytes_per_second > 0;
    line(1, words + (known ? joined(", ", rate_words(found.ring_bytes_per_second), " in all") : ", rate not known"));
  }

  void order() {
    if (graph_.sites.size() < 2) return;
    std::string words = "ring of sites:";
    for (const int site : channels_.order.sites) words += joined(" ", site_name(graph_, static_cast<std::size_t>(site)), " >");
    words.append(" ").append(site_name(graph_, static_cast<std::size_t>(channels_.order.sites.front())));
    const bool known = !graph_.between_sites.empty();
    line(1, words + (known ? joined(", 1 MiB over its worst link takes ", time_words(channels_.order.worst))
                           : "; no link between sites is known"));
  }

  const TopologyGraph& graph_;
  const GraphChannels& channels_;
  std::string text_;
};

void add_found(JsonWriter& json, const char* key, const FoundChannels& found) {
  json.key(key).open('{').key("hops").value(name_of(found.worst_hop));
  json.key("channel_bytes_per_second").number(found.channel_bytes_per_second).key("channels").open('[');
  for (const std::vector<int>& channel : found.channels) {
    json.open('[');
    for (const int member : channel) json.number(static_cast<double>(member));
    json.close(']');
  }
  json.close(']').key("fallback").number(std::uint64_t{found.is_fallback}).close('}');
}

}  // namespace

std::vector<std::string> member_names(const TopologyHost& host) {
  std::vector<std::string> places;
  std::vector<std::string> numbers;
  std::set<int> different;
  for (const GpuPlace& place : gpus_of(host)) {
    places.push_back(std::to_string(places.size()));
    numbers.push_back(std::to_string(place.gpu->dev));
    if (place.gpu->dev >= 0) different.insert(place.gpu->dev);
  }
  return different.size() == places.size() ? numbers : places;
}

std::vector<ChannelsOfOneWay> different_rings(const FoundChannels& rings) { return different(rings, from_lowest); }

std::vector<ChannelsOfOneWay> different_trees(const FoundChannels& trees) {
  return different(trees, [](const TreeParents& parents) { return parents; });
}

std::string numbers_text(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text.append(text.empty() ? "" : " ").append(std::to_string(numbers[i]));
    if (last > i) text.append("-").append(std::to_string(numbers[last]));
    i = last;
  }
  return text;
}

std::string tree_text(const TreeParents& parents, const std::vector<std::string>& names) {
  std::string text;
  const auto add = [&](int member) {
    std::string children;
    for (std::size_t i = 0; i < parents.size(); ++i)
      if (parents[i] == member) children.append(" ").append(names[i]);
    if (!children.empty())
      text.append(text.empty() ? "" : "; ").append(names[static_cast<std::size_t>(member)]).append(" >").append(children);
  };
  std::vector<int> open;
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (parents[i] < 0) open.push_back(static_cast<int>(i));
  for (std::size_t at = 0; at < open.size(); ++at) {
    const int member = open[at];
    add(member);
    for (std::size_t i = 0; i < parents.size(); ++i)
      if (parents[i] == member) open.push_back(static_cast<int>(i));
  }
  return text;
}

std::string channels_text(const TopologyGraph& graph, const GraphChannels& channels) {
  return ChannelText(graph, channels).write();
}

void add_channels(JsonWriter& json, const TopologyGraph& graph, const GraphChannels& channels) {
  json.key("channels").open('{').key("hosts").open('[');
  for (std::size_t host = 0; host < graph.hosts.size(); ++host) {
    const HostChannels& found = channels.hosts[host];
    const std::vector<PortPlace> ports = ports_of(graph.hosts[host]);
    json.open('{').key("host").value(graph.hosts[host].name);
    if (channels.like[host] != host) {
      json.key("like").value(graph.hosts[channels.like[host]].name).close('}');
      continue;
    }
    add_found(json, "rings", found.rings);
    add_found(json, "tree_parents", found.trees);
    json.key("rails").open('[');
    for (const Rail& rail : found.rails)
      json.open('{')
          .key("port")
          .value(ports[rail.port].port->name)
          .key("gpu")
          .number(static_cast<double>(rail.member))
          .close('}');
    json.close(']').close('}');
  }
  json.close(']').key("ring_of_sites").open('[');
  for (const int site : channels.order.sites) json.number(static_cast<double>(site));
  json.close(']').close('}');
}

}  // namespace seto
