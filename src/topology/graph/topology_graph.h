#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/topology/graph/core_set.h"
#include "src/topology/graph/pci_address.h"
#include "src/topology/link_facts.h"

namespace seto {

// The topology as a plain value: sites, hosts, NUMA nodes, the PCI tree, GPUs, NICs, and the links between them. Discovery and
// files fill it; choice, drawings and the simulator read it. A number that is absent, or -1 where -1 is not a value, is not
// known.

// A bundle of links from a GPU to another GPU or to a switch of GPU links.
struct GpuLink {
  std::optional<PciAddress> target;           // absent: some virtual machines hide it, and it is a switch
  std::optional<std::uint32_t> target_class;  // PCI class of the target
  int count = 1;                              // parallel links
  LinkMedium medium = LinkMedium::nvlink;     // nvlink or xgmi

  [[nodiscard]] bool to_switch() const { return !target || (target_class && is_gpu_switch_class(*target_class)); }
  friend bool operator==(const GpuLink&, const GpuLink&) = default;
};

// The link of a GPU to the memory of its CPU package.
struct ChipLink {
  int bandwidth_mb = 0;  // as NCCL's files state it, for each link
  int count = 1;
  friend bool operator==(const ChipLink&, const ChipLink&) = default;
};

struct Gpu {
  int dev = -1;   // ordinal of the CUDA device
  int sm = -1;    // compute capability times ten; 90 is H100
  int rank = -1;  // the rank that drives it
  std::optional<bool> gdr;
  std::string gcn;   // AMD's name of the architecture, such as gfx942
  std::string arch;  // AMD's number of it
  std::vector<GpuLink> links;
  std::optional<ChipLink> chip_link;
  std::string uuid;     // of NVML; only files between the hosts of a job carry it
  std::string product;  // the same
  FactSource source = FactSource::file;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// An RDMA port of a running host: how a communicator would use it, towards a host with the same addresses.
struct RdmaPort {
  std::string link_layer;  // "Ethernet" or "InfiniBand"
  std::string over;        // the network interface of a software device (rdma_rxe); empty: the port of a NIC
  std::optional<int> gid;  // index of the GID; absent: it would use a LID, or nothing
  std::string gid_text;    // "10.0.0.1"
  std::string why;         // its type, and why that one; or why the port cannot be used
  [[nodiscard]] bool is_known() const { return !link_layer.empty(); }
  friend bool operator==(const RdmaPort&, const RdmaPort&) = default;
};

// A port of a NIC, or a network interface without a PCI device.
struct NetPort {
  std::string name;
  int dev = -1;
  int speed_mbit = 0;  // 0: unknown
  int port = -1;
  std::optional<double> latency_us;
  std::optional<std::uint64_t> guid;
  int max_connections = -1;
  std::optional<bool> gdr;
  // Attributes for NCCL's plugins (keep, coll, net, gin, rma, rail, plane), kept as they are for the writer.
  std::vector<std::pair<std::string, std::string>> plugin_attributes;
  // The state of a running host, which only files between the hosts of a job carry.
  std::optional<bool> up;
  int mtu = 0;  // 0: unknown
  bool default_route = false;
  std::vector<std::string> addresses;
  RdmaPort rdma;
  FactSource source = FactSource::file;
  FactSource speed_source = FactSource::file;
  friend bool operator==(const NetPort&, const NetPort&) = default;
};

struct PciDevice {
  PciAddress address;
  std::optional<std::uint32_t> class_code;
  std::optional<std::uint32_t> vendor, device, subsystem_vendor, subsystem_device;
  int generation = 0;  // of PCI Express, of the link to the parent; 0: unknown
  int lanes = 0;       // 0: unknown
  FactSource source = FactSource::file;
  FactSource link_source = FactSource::file;
  std::vector<Gpu> gpus;
  std::vector<NetPort> ports;
  std::vector<PciAddress> peer_links;  // further links between switches, outside the tree
  std::vector<PciDevice> children;

  [[nodiscard]] bool is_switch() const { return !children.empty() || (class_code && is_bridge_class(*class_code)); }
  [[nodiscard]] LinkFacts link() const;
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

struct NumaNode {
  int number = -1;
  CoreSet cores;
  std::string arch;    // x86_64, arm64, ppc64
  std::string vendor;  // GenuineIntel, AuthenticAMD, ...
  int family = -1, model = -1;
  std::vector<PciDevice> devices;
  std::vector<NetPort> ports;  // network interfaces without a PCI device
  FactSource source = FactSource::file;
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

struct TopologyHost {
  std::string name;  // unique in a graph of several hosts
  std::size_t site = 0;
  std::vector<NumaNode> nodes;
  LinkFacts interconnect{.medium = LinkMedium::interconnect};  // between its NUMA nodes
  std::vector<std::string> notes;                              // what was guessed or could not be found, for people
  friend bool operator==(const TopologyHost&, const TopologyHost&) = default;
};

struct TopologySite {
  std::string name;
  LinkFacts fabric{.medium = LinkMedium::fabric};       // between two of its hosts
  LinkFacts uplink{.medium = LinkMedium::wide_area};    // what its hosts share towards all other sites
  LinkFacts downlink{.medium = LinkMedium::wide_area};  // what they share in the other direction
  friend bool operator==(const TopologySite&, const TopologySite&) = default;
};

// Limits of what files may state: memory and time of a search grow with the square of these numbers, and more.
inline constexpr std::size_t kMostGpusOfHost = 1024;
inline constexpr std::size_t kMostSites = 1024;

struct TopologyGraph {
  std::vector<TopologySite> sites = std::vector<TopologySite>(1);  // at least one
  std::vector<TopologyHost> hosts;
  // The directed matrix between sites: row `from`, column `to`. Empty until a link between sites is known.
  std::vector<std::vector<LinkFacts>> between_sites;

  // The matrix's entry, which is made if the matrix is empty.
  [[nodiscard]] LinkFacts& between(std::size_t from, std::size_t to);
  friend bool operator==(const TopologyGraph&, const TopologyGraph&) = default;
};

}  // namespace seto
