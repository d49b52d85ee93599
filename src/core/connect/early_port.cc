#include "src/core/connect/early_port.h"

#include "src/base/log.h"
#include "src/base/result.h"
#include "src/control/network/tcp_connector.h"
#include "src/net/tcp_socket.h"

namespace seto {
namespace {

Status check_number_of_ports(const Config& config, int local_ranks) {
  SETO_ASSIGN(const PortRange range, parse_ports(config.ports));
  const int ports = range.last - range.first + 1;
  if (ports >= local_ranks) return {};
  return failure(
      Code::invalid_argument,
      "SETO_PORTS=%s has %d ports, but this host runs %d processes of the job, and each listens on one (that of rank 0 "
      "on two): give a range of at least %d ports",
      config.ports.c_str(), ports, local_ranks, local_ranks + 1);
}

// The texts of listen_tcp() say so. Another failure of the network's settings has a text of its own, which the init tells to all
// ranks.
bool lacks_ports(const Config& config, const Status& failed) {
  return !parse_ports(config.ports).ok() ||
         (failed.code() == Code::unavailable && failed.text().find(" is taken") != std::string_view::npos);
}

}  // namespace

Status take_port_early(const Config& config, const KnownRanks& known) {
  if (config.ports.empty() || known.ranks == 1) return {};
  const bool one_host = known.local_ranks >= known.ranks;
  const bool several_nodes = config.transport == Medium::tcp || (known.local_ranks > 0 && !one_host);
  if (one_host && !several_nodes && config.host_id.empty()) return {};
  if (several_nodes) SETO_TRY(check_number_of_ports(config, known.local_ranks));
  const Result<TcpConnector*> connector = TcpConnector::of_process(NetworkSettings::of(config));
  if (connector.ok() || !lacks_ports(config, connector.status())) return {};
  const std::string why(connector.status().text());
  const char* const advice = "each process of this host listens on one port of the range, that of rank 0 on two";
  if (several_nodes)
    return failure(connector.status().code(), "SETO_PORTS=%s: %s; %s", config.ports.c_str(), why.c_str(), advice);
  SETO_LOG(warn, "SETO_PORTS=%s: %s; %s. Ranks of other hosts will not reach this process", config.ports.c_str(), why.c_str(),
           advice);
  return {};
}

}  // namespace seto
