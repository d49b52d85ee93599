#include "transports/rdma/pipes/rdma_settings.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace seto::rdma {

std::string_view without_always(std::string_view setting) {
  constexpr std::string_view kAlways = "always";
  if (!setting.starts_with(kAlways)) return setting;
  if (setting == kAlways) return "auto";
  return setting[kAlways.size()] == ',' ? setting.substr(kAlways.size() + 1) : setting;
}

Result<std::vector<PortName>> ports_in(std::string_view setting) {
  const std::string_view text = without_always(setting);
  std::vector<PortName> ports;
  if (text == "auto") return ports;
  const auto wrong = [&] {
    return failure(Code::invalid_argument,
                   "SETO_RDMA=%s: wanted auto, off, always, or devices with or without a port (mlx5_0:1,mlx5_1), perhaps "
                   "behind always and a comma",
                   std::string(setting).c_str());
  };
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t colon = std::min(one.find(':'), one.size());
    PortName port{std::string(one.substr(0, colon)), 0};
    const std::string_view number = one.substr(std::min(colon + 1, one.size()));
    unsigned value = 0;
    for (const char digit : number) {
      if (std::isdigit(static_cast<unsigned char>(digit)) == 0 || value > 25) return wrong();
      value = 10 * value + static_cast<unsigned>(digit - '0');
    }
    if (port.device.empty() || value > 254 || (colon < one.size() && value == 0)) return wrong();
    port.port = static_cast<std::uint8_t>(value);
    ports.push_back(std::move(port));
  }
  if (ports.empty()) return wrong();
  return ports;
}

QueuePairPath path_in(const Config& config) {
  // The other two bits of a class are marks for congestion, which belong to the network.
  const std::uint64_t of_data = config.dscp_data == kAutomatic ? 0 : config.dscp_data << 2;
  QueuePairPath path;
  path.traffic_class = static_cast<std::uint8_t>(config.rdma_traffic_class == kAutomatic ? of_data : config.rdma_traffic_class);
  path.service_level = static_cast<std::uint8_t>(config.rdma_service_level);
  path.timeout = static_cast<std::uint8_t>(config.rdma_timeout);
  path.retry_count = static_cast<std::uint8_t>(config.rdma_retry_count);
  return path;
}

std::uint32_t most_mtu_in(const Config& config) { return config.rdma_mtu == 0 ? kNoMtuLimit : 128U << config.rdma_mtu; }

}  // namespace seto::rdma
