#include "src/api/support/this_host.h"

#include <string>
#include <utility>
#include <vector>

#include "src/base/text.h"
#include "src/core/connect/transport_list.h"
#include "src/topology/discovery/discover.h"
#include "src/topology/discovery/network_facts.h"

namespace seto::api {

TopologyHost this_host() {
  TopologyHost host = discover_this_host();
  const Result<std::vector<PortWords>> ports = rdma_ports();
  if (!ports.ok()) {
    host.notes.push_back("RDMA: " + plain_ascii(ports.status().text()));
    return host;
  }
  std::vector<VerbsPort> known;
  for (const PortWords& port : ports.value()) {
    if (port.device.empty()) {
      host.notes.push_back("RDMA: " + port.name + " " + port.state + ": " + plain_ascii(port.remark));
      continue;
    }
    VerbsPort& one = known.emplace_back();
    one.device = port.device;
    one.port = port.port;
    one.rdma.link_layer = port.link_layer;
    one.rdma.gid = port.gid_index;
    one.rdma.gid_text = port.gid;
    one.rdma.why = plain_ascii(port.why);
    one.mtu = port.mtu;
    one.speed_mbit = port.rate_mbit;
  }
  add_verbs(host, known);
  return host;
}

}  // namespace seto::api
