#pragma once

#include "tests/device_memory/device_faults.h"

namespace seto::testing {

// Ranks that state hosts and sites of their own, on one machine: their messages go over TCP on the loopback interface.
struct Hosts {
  int hosts = 2;
  int ranks_each = 1;
  bool sites = false;  // each host is a site of its own

  [[nodiscard]] int ranks() const { return hosts * ranks_each; }
};

class DeviceHosts : public DeviceProcesses {
 protected:
  // As on_ranks().
  void on_hosts(const Hosts& hosts, const Body& body, setoConfig_t config = device_config()) const {
    setoUniqueId id;
    ASSERT_TRUE(succeeded(setoGetUniqueId(&id)));
    on_threads(hosts.ranks(), [&](DeviceRank& mine) {
      const std::string host = host_of(hosts, mine.rank);
      setoConfig_t own = stated(config, hosts, host);
      ASSERT_TRUE(succeeded(setoCommInitRankConfig(&mine.comm, hosts.ranks(), id, mine.rank, &own)));
      body(mine);
      if (mine.comm != nullptr) {
        EXPECT_TRUE(succeeded(setoCommDestroy(mine.comm)));
      }
    });
  }
  static std::string host_of(const Hosts& hosts, int rank) { return "host " + std::to_string(rank / hosts.ranks_each); }
  static setoConfig_t stated(setoConfig_t config, const Hosts& hosts, const std::string& host) {
    config.hostId = host.c_str();
    if (hosts.sites) config.siteId = host.c_str();
    return config;
  }
};

}  // namespace seto::testing
