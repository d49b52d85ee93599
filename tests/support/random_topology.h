#pragma once

#include <cstddef>
#include <random>

#include "src/topology/graph/topology_graph.h"

namespace seto::testing {

// A graph with random hosts, devices, links and sites, as a file could state it: up to 4 hosts of up to 4 NUMA nodes, in up to 3
// sites. Header only, because the libraries of the folders below are not all linked to the support library.
class RandomTopology final {
 public:
  explicit RandomTopology(std::mt19937_64& random) : random_(random) {}

  TopologyGraph make() {
    TopologyGraph graph;
    graph.sites.resize(1 + below(3));
    for (std::size_t i = 0; i < graph.sites.size(); ++i) {
      if (graph.sites.size() > 1) graph.sites[i].name = "site " + std::to_string(i);
      graph.sites[i].fabric = link(LinkMedium::fabric);
      graph.sites[i].uplink = link(LinkMedium::wide_area);
      graph.sites[i].downlink = link(LinkMedium::wide_area);
    }
    if (graph.sites.size() > 1 && coin()) fill_between(graph);
    const std::size_t hosts = 1 + below(4);
    for (std::size_t i = 0; i < hosts; ++i)
      graph.hosts.push_back(host(graph.sites.size(), hosts == 1 ? "" : "h<" + std::to_string(i)));
    return graph;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  int number(int limit) { return static_cast<int>(below(static_cast<std::size_t>(limit))); }
  bool coin() { return below(2) == 0; }
  std::optional<double> maybe(double most) {
    return coin() ? std::optional(std::uniform_real_distribution<double>(0, most)(random_)) : std::nullopt;
  }
  std::optional<std::uint32_t> maybe_id(std::size_t limit) {
    return coin() ? std::optional(static_cast<std::uint32_t>(below(limit))) : std::nullopt;
  }
  std::optional<bool> maybe_flag() { return coin() ? std::optional(coin()) : std::nullopt; }

  LinkFacts link(LinkMedium medium) {
    LinkFacts facts{.medium = medium};
    facts.bytes_per_second = maybe(1e12);
    facts.round_trip_s = maybe(0.2);
    facts.loss = maybe(1);
    facts.socket_bytes_per_second = maybe(1e9);
    if (!facts.known()) return facts;
    facts.age_s = maybe(1000);
    facts.source = static_cast<FactSource>(below(kFactSources));
    return facts;
  }

  void fill_between(TopologyGraph& graph) {
    graph.between(0, 1) = link(LinkMedium::wide_area);
    for (std::size_t from = 0; from < graph.sites.size(); ++from)
      for (std::size_t to = 0; to < graph.sites.size(); ++to)
        if (from != to) graph.between(from, to) = link(LinkMedium::wide_area);
    graph.between(0, 1).bytes_per_second = 1.25e8;
  }

  TopologyHost host(std::size_t sites, std::string name) {
    TopologyHost made;
    made.name = std::move(name);
    made.site = below(sites);
    next_bus_ = 0;
    made.interconnect = link(LinkMedium::interconnect);
    const std::size_t nodes = 1 + below(4);
    for (std::size_t i = 0; i < nodes; ++i) {
      NumaNode node;
      node.number = static_cast<int>(i);
      for (std::size_t cores = below(40); cores > 0; --cores) node.cores.add(below(300));
      if (coin()) node.arch = "x86_64";
      if (coin()) node.vendor = "AuthenticAMD";
      if (coin()) node.family = number(200);
      if (coin()) node.model = number(200);
      for (std::size_t devices = below(4); devices > 0; --devices) node.devices.push_back(device(3));
      for (std::size_t ports = below(2); ports > 0; --ports) node.ports.push_back(port());
      made.nodes.push_back(std::move(node));
    }
    return made;
  }

  PciAddress address() {
    const int bus = next_bus_++;
    return {coin() ? 0u : 0x10000u, static_cast<std::uint8_t>(bus % 256), static_cast<std::uint8_t>(bus / 256 % 32),
            static_cast<std::uint8_t>(below(8))};
  }

  PciDevice device(int depth) {
    PciDevice made;
    made.address = address();
    made.class_code = maybe_id(1u << 24);
    made.vendor = maybe_id(1u << 16);
    made.device = maybe_id(1u << 16);
    made.subsystem_vendor = maybe_id(1u << 16);
    made.subsystem_device = maybe_id(1u << 16);
    made.generation = number(7);
    made.lanes = number(33);
    if (coin()) made.gpus.push_back(gpu());
    for (std::size_t ports = below(3); ports > 0; --ports) made.ports.push_back(port());
    if (coin()) made.peer_links.push_back({2, 0, 0, 0});
    for (std::size_t children = depth > 0 ? below(4) : 0; children > 0; --children) made.children.push_back(device(depth - 1));
    return made;
  }

  Gpu gpu() {
    Gpu made;
    made.dev = number(9) - 1;
    made.sm = coin() ? 90 : -1;
    made.rank = number(9) - 1;
    made.gdr = maybe_flag();
    const bool amd = coin();
    if (amd) made.gcn = "gfx942";
    for (std::size_t links = below(4); links > 0; --links) {
      GpuLink link;
      if (coin()) link.target = PciAddress{0, static_cast<std::uint8_t>(below(256)), 0, 0};
      link.target_class = maybe_id(1u << 24);
      link.count = 1 + number(18);
      link.medium = amd ? LinkMedium::xgmi : LinkMedium::nvlink;
      made.links.push_back(link);
    }
    if (coin()) made.chip_link = ChipLink{number(100'000), 1 + number(4)};
    return made;
  }

  NetPort port() {
    NetPort made;
    made.name = coin() ? "mlx5_0" : "a \"b\" & c";
    made.dev = number(9) - 1;
    made.speed_mbit = number(400'000);
    made.port = number(3);
    made.latency_us = maybe(10);
    if (coin()) made.guid = random_();
    made.max_connections = number(100'000);
    made.gdr = maybe_flag();
    if (coin()) made.plugin_attributes.emplace_back("rail", "3");
    return made;
  }

  std::mt19937_64& random_;
  int next_bus_ = 0;
};

}  // namespace seto::testing
