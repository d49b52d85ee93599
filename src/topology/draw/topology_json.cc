#include "src/base/json_writer.h"
#include "src/topology/draw/channel_text.h"
#include "src/topology/draw/topology_text.h"
#include "src/topology/graph/graph_views.h"

namespace seto {
namespace {

class GraphJson final {
 public:
  std::string write(const TopologyGraph& graph) {
    json_.open('{').key("sites").open('[');
    for (const TopologySite& site : graph.sites) {
      json_.open('{').key("name").value(site.name);
      link("fabric", site.fabric);
      link("uplink", site.uplink);
      link("downlink", site.downlink);
      json_.close('}');
    }
    json_.close(']').key("hosts").open('[');
    for (const TopologyHost& each : graph.hosts) host(each);
    json_.close(']').key("between_sites").open('[');
    for (std::size_t from = 0; from < graph.between_sites.size(); ++from)
      for (std::size_t to = 0; to < graph.between_sites.size(); ++to) {
        const LinkFacts& facts = graph.between_sites[from][to];
        if (!facts.known()) continue;
        json_.open('{').key("from").number(std::uint64_t{from}).key("to").number(std::uint64_t{to});
        link("link", facts);
        json_.close('}');
      }
    json_.close(']');
    add_channels(json_, graph, search_channels(graph));
    json_.close('}');
    return std::move(json_).text();
  }

 private:
  void known(std::string_view key, double value, double unknown = -1) {
    if (value != unknown) json_.key(key).number(value);
  }
  void known(std::string_view key, const std::string& value) {
    if (!value.empty()) json_.key(key).value(value);
  }
  void known(std::string_view key, const std::optional<double>& value) {
    if (value) json_.key(key).number(*value);
  }
  void source(FactSource from) { json_.key("source").value(name_of(from)); }

  void link(std::string_view key, const LinkFacts& facts) {
    if (!facts.known()) return;
    json_.key(key).open('{').key("medium").value(name_of(facts.medium));
    known("bytes_per_second", facts.bytes_per_second);
    known("round_trip_s", facts.round_trip_s);
    known("loss", facts.loss);
    known("socket_bytes_per_second", facts.socket_bytes_per_second);
    known("age_s", facts.age_s);
    source(facts.source);
    json_.close('}');
  }

  void host(const TopologyHost& host) {
    json_.open('{').key("name").value(host.name).key("site").number(std::uint64_t{host.site});
    link("interconnect", host.interconnect);
    json_.key("numa_nodes").open('[');
    for (const NumaNode& each : host.nodes) node(each);
    json_.close(']').key("notes").open('[');
    for (const std::string& note : host.notes) json_.value(note);
    json_.close(']').close('}');
  }

  void node(const NumaNode& node) {
    json_.open('{');
    known("number", node.number);
    known("cores", node.cores.ranges());
    known("architecture", node.arch);
    known("vendor", node.vendor);
    known("family", node.family);
    known("model", node.model);
    source(node.source);
    devices(node.devices);
    ports(node.ports);
    json_.close('}');
  }

  void devices(const std::vector<PciDevice>& devices) {
    json_.key("devices").open('[');
    for (const PciDevice& each : devices) device(each);
    json_.close(']');
  }

  void device(const PciDevice& device) {
    json_.open('{').key("address").value(text_of(device.address));
    if (device.class_code) known("class", *device.class_code);
    if (device.vendor) known("vendor", *device.vendor);
    if (device.device) known("device", *device.device);
    known("generation", device.generation, 0);
    known("lanes", device.lanes, 0);
    source(device.source);
    link("link", device.link());
    if (!device.gpus.empty()) {
      json_.key("gpus").open('[');
      for (const Gpu& each : device.gpus) gpu(each);
      json_.close(']');
    }
    if (!device.ports.empty()) ports(device.ports);
    if (!device.children.empty()) devices(device.children);
    json_.close('}');
  }

  void gpu(const Gpu& gpu) {
    json_.open('{');
    known("dev", gpu.dev);
    known("sm", gpu.sm);
    known("gcn", gpu.gcn);
    known("rank", gpu.rank);
    known("uuid", gpu.uuid);
    known("product", gpu.product);
    source(gpu.source);
    json_.key("links").open('[');
    for (const GpuLink& each : gpu.links) {
      json_.open('{').key("medium").value(name_of(each.medium)).key("count").number(static_cast<double>(each.count));
      json_.key("to").value(each.target ? text_of(*each.target) : "a hidden switch").close('}');
    }
    json_.close(']');
    if (gpu.chip_link) known("chip_link_bytes_per_second", 1e6 * gpu.chip_link->bandwidth_mb * gpu.chip_link->count);
    json_.close('}');
  }

  void ports(const std::vector<NetPort>& ports) {
    json_.key("ports").open('[');
    for (const NetPort& port : ports) {
      json_.open('{').key("name").value(port.name);
      known("dev", port.dev);
      known("port", port.port);
      known("mtu", port.mtu, 0);
      if (port.speed_mbit > 0)
        json_.key("bytes_per_second").number(port.speed_mbit * 1e6 / 8).key("speed_source").value(name_of(port.speed_source));
      known("latency_us", port.latency_us);
      if (port.gdr) json_.key("gpudirect").number(std::uint64_t{*port.gdr});
      if (port.rdma.is_known()) rdma(port.rdma);
      if (port.up) json_.key("up").number(std::uint64_t{*port.up});
      json_.key("default_route").number(std::uint64_t{port.default_route});
      json_.key("addresses").open('[');
      for (const std::string& address : port.addresses) json_.value(address);
      json_.close(']');
      source(port.source);
      json_.close('}');
    }
    json_.close(']');
  }

  void rdma(const RdmaPort& port) {
    json_.key("rdma").open('{').key("link_layer").value(port.link_layer);
    known("over", port.over);
    if (port.gid) json_.key("gid_index").number(static_cast<double>(*port.gid));
    known("gid", port.gid_text);
    known("why", port.why);
    json_.close('}');
  }

  JsonWriter json_;
};

}  // namespace

std::string topology_json(const TopologyGraph& graph) { return GraphJson().write(graph); }

}  // namespace seto
