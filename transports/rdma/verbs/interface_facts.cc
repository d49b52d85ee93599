#include "transports/rdma/verbs/interface_facts.h"

#include <net/if.h>

#include <fstream>
#include <sstream>

namespace seto::rdma {

std::uint16_t vlan_in(const std::string& config, const std::string& interface) {
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, bar;
    unsigned vlan = 0;
    if (words >> name >> bar >> vlan && name == interface && bar == "|" && vlan < 4096) return static_cast<std::uint16_t>(vlan);
  }
  return 0;
}

std::uint16_t vlan_of(std::uint32_t interface) {
  char name[IF_NAMESIZE] = "";
  if (interface == 0 || if_indextoname(interface, name) == nullptr) return 0;
  std::ifstream file("/proc/net/vlan/config");
  std::ostringstream config;
  config << file.rdbuf();
  return vlan_in(config.str(), name);
}

}  // namespace seto::rdma
