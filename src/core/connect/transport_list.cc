// The only file of core that names transports (tests/tidy/layering.py checks this).

#include "src/core/connect/transport_list.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "transports/rdma/connect/port_report.h"
#include "transports/rdma/gpu_memory/gpu_reach.h"
#include "transports/rdma/pipes/rdma_pipes.h"
#include "transports/shm/shm_transport.h"
#include "transports/shm/user_memory.h"
#include "transports/tcp/connect/tcp_transport.h"

namespace seto {

Result<std::vector<std::unique_ptr<Transport>>> make_transports(const TransportSetup& setup) {
  std::vector<std::unique_ptr<Transport>> all;
  SETO_ASSIGN(std::unique_ptr<Transport> shared_memory, ShmTransport::create(setup));
  all.push_back(std::move(shared_memory));
  all.push_back(std::make_unique<tcp::TcpTransport>(setup, [config = setup.config] { return rdma::RdmaPipes::open(*config); }));
  return all;
}

Result<std::vector<PortWords>> rdma_ports() {
  SETO_ASSIGN(const std::vector<rdma::PortReport> reports, rdma::report_ports());
  std::vector<PortWords> ports;
  for (const rdma::PortReport& one : reports) {
    PortWords port{one.name, one.value, one.remark, one.device, one.port, one.link_layer, {}, one.gid, one.why, 0, 0};
    if (one.gid_index) port.gid_index = static_cast<int>(*one.gid_index);
    port.mtu = static_cast<int>(one.mtu);
    port.rate_mbit = static_cast<int>(std::min<std::uint64_t>(one.rate_mbit, 100'000'000));
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<GpuReach> rdma_reach(const Config& config, GpuBuffer& buffer, Deadline until) {
  return rdma::find_gpu_reach(config.rdma, buffer, until);
}

Result<void*> allocate_lendable(std::size_t size) { return UserMemory::of_process().allocate(size); }

std::optional<Status> free_lendable(void* memory) { return UserMemory::of_process().free(memory); }

}  // namespace seto
