#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// A port of this host in words, for reports.
struct PortReport {
  std::string name;    // "mlx5_0 port 1"
  std::string value;   // "up", or its state, or why the device cannot be used
  std::string remark;  // link layer, GID and why this one, MTU and rate, as towards a peer with the same addresses
  // The same as values; a device that cannot be opened has only its trouble in words.
  std::string device;
  std::uint8_t port = 0;
  std::string link_layer;
  std::optional<std::uint32_t> gid_index;  // absent: it uses a LID, or nothing
  std::string gid;
  std::string why;  // this GID; or why the port cannot be used
  std::uint32_t mtu = 0;
  std::uint64_t rate_mbit = 0;
};

// All ports of all devices, used or not. Failure: the list of devices cannot be read.
[[nodiscard]] Result<std::vector<PortReport>> report_ports(Verbs& verbs);

// The same of this machine; empty where it lists no device. Failure: there are devices, but no library for them.
[[nodiscard]] Result<std::vector<PortReport>> report_ports();

}  // namespace seto::rdma
