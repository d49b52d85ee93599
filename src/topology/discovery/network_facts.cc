#include "src/topology/discovery/network_facts.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "src/topology/discovery/pci_facts.h"

namespace seto {
namespace {

// The port of this name and number; it is made if the list lacks it.
NetPort& port_of(std::vector<NetPort>& ports, const std::string& name, int number) {
  for (NetPort& port : ports)
    if (port.name == name && (port.port == number || port.port < 0)) return port;
  NetPort& made = ports.emplace_back();
  made.name = name;
  return made;
}

// The interfaces of default routes, of IPv4 and IPv6.
std::vector<std::string> default_routes(HostApi& system) {
  std::vector<std::string> names;
  std::istringstream ipv4(system.read("/proc/net/route").value_or(""));
  for (std::string line; std::getline(ipv4, line);) {
    std::istringstream words(line);
    std::string name, destination, gateway, flags, count, use, metric, mask;
    words >> name >> destination >> gateway >> flags >> count >> use >> metric >> mask;
    if (destination == "00000000" && mask == "00000000") names.push_back(name);
  }
  std::istringstream ipv6(system.read("/proc/net/ipv6_route").value_or(""));
  for (std::string line; std::getline(ipv6, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    const bool everything = all.size() == 10 && all[0] == std::string(32, '0') && all[1] == "00";
    if (everything && all[9] != "lo") names.push_back(all[9]);
  }
  return names;
}

int positive_number(const std::optional<std::string>& text, int most) {
  const auto number = text ? parse_uint(*text) : std::nullopt;
  return number && *number <= static_cast<std::uint64_t>(most) ? static_cast<int>(*number) : 0;
}

// "400 Gb/sec (4X NDR)" -> 400000.
int rdma_speed_mbit(const std::string& text) {
  double gigabits = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), gigabits);
  const bool stated = error == std::errc() &&
                      std::string_view(at, static_cast<std::size_t>(text.data() + text.size() - at)).starts_with(" Gb/sec");
  return stated && gigabits > 0 && gigabits < 1e5 ? static_cast<int>(gigabits * 1000) : 0;
}

// "9803:9b03:00ab:1234"
std::optional<std::uint64_t> guid_of(std::string text) {
  std::erase(text, ':');
  std::uint64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && at == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

void add_interfaces(TopologyHost& host, HostApi& system) {
  const std::vector<std::string> routes = default_routes(system);
  const std::vector<HostApi::Address> addresses = system.addresses();
  for (const std::string& name : system.list("/sys/class/net")) {
    if (name == "lo") continue;
    const std::string folder = "/sys/class/net/" + name + "/";
    const auto address = last_address(system.real_path(folder + "device").value_or(""));
    PciDevice* const device = address ? find_device(host, *address) : nullptr;
    const bool has_address =
        std::any_of(addresses.begin(), addresses.end(), [&](const HostApi::Address& each) { return each.interface == name; });
    if (device == nullptr && !has_address) continue;
    NetPort& port = port_of(device != nullptr ? device->ports : host.nodes.front().ports, name, -1);
    port.source = FactSource::sysfs;
    if (const int speed = positive_number(system.read(folder + "speed"), 100'000'000)) {
      port.speed_mbit = speed;
      port.speed_source = FactSource::sysfs;
    }
    port.mtu = positive_number(system.read(folder + "mtu"), 1'000'000);
    const std::string state = system.read(folder + "operstate").value_or("unknown");
    if (state == "up" || state == "down") port.up = state == "up";
    port.default_route = std::find(routes.begin(), routes.end(), name) != routes.end();
    for (const HostApi::Address& each : addresses)
      if (each.interface == name) port.addresses.push_back(each.text);
  }
}

void add_rdma_ports(TopologyHost& host, HostApi& system) {
  const std::string devices = "/sys/class/infiniband/";
  if (system.list(devices).empty()) host.notes.emplace_back("RDMA: no device");
  for (const std::string& name : system.list(devices)) {
    // A software device works over a network interface, whose NIC says where it is.
    const std::string over = plain_ascii(system.read(devices + name + "/parent").value_or(""));
    const std::string nic = over.empty() ? devices + name : "/sys/class/net/" + over;
    const auto address = last_address(system.real_path(nic + "/device").value_or(""));
    PciDevice* const device = address ? find_device(host, *address) : nullptr;
    std::vector<NetPort>& ports = device != nullptr ? device->ports : host.nodes.front().ports;
    if (device == nullptr && over.empty()) host.notes.push_back("RDMA device " + name + " has no visible PCI device");
    for (const std::string& number : system.list(devices + name + "/ports")) {
      const std::string folder = devices + name + "/ports/" + number + "/";
      const int numbered = positive_number(number, 255);
      NetPort& port = port_of(ports, name, numbered);
      port.port = numbered;
      port.source = FactSource::sysfs;
      port.up = system.read(folder + "state").value_or("").find("ACTIVE") != std::string::npos;
      port.guid = guid_of(system.read(devices + name + "/node_guid").value_or(""));
      port.rdma.over = over;
      port.rdma.link_layer = plain_ascii(system.read(folder + "link_layer").value_or(""));
      // Without that module a driver may still share memory of GPUs in another way (dma-buf), so its absence says nothing.
      if (!over.empty()) port.gdr = false;
      if (over.empty() && !system.list("/sys/module/nvidia_peermem").empty()) port.gdr = true;
      if (const int speed = rdma_speed_mbit(system.read(folder + "rate").value_or(""))) {
        port.speed_mbit = speed;
        port.speed_source = FactSource::sysfs;
      }
    }
  }
}

namespace {

void add_verbs(NetPort& port, const VerbsPort& known) {
  std::string over = std::move(port.rdma.over);
  std::string layer = std::move(port.rdma.link_layer);
  port.rdma = known.rdma;
  port.rdma.over = std::move(over);
  if (port.rdma.link_layer.empty()) port.rdma.link_layer = std::move(layer);
  if (known.mtu > 0) port.mtu = known.mtu;
  if (port.speed_mbit > 0 || known.speed_mbit <= 0) return;
  port.speed_mbit = known.speed_mbit;
  port.speed_source = FactSource::verbs;
}

void add_verbs(std::vector<NetPort>& ports, const std::vector<VerbsPort>& known) {
  for (NetPort& port : ports)
    for (const VerbsPort& one : known)
      if (port.name == one.device && port.port == one.port) add_verbs(port, one);
}

void add_verbs(std::vector<PciDevice>& devices, const std::vector<VerbsPort>& known) {
  for (PciDevice& device : devices) {
    add_verbs(device.ports, known);
    add_verbs(device.children, known);
  }
}

}  // namespace

void add_verbs(TopologyHost& host, const std::vector<VerbsPort>& known) {
  for (NumaNode& node : host.nodes) {
    add_verbs(node.ports, known);
    add_verbs(node.devices, known);
  }
}

}  // namespace seto
