#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/config.h"
#include "transports/gpu_buffer.h"
#include "transports/transport.h"

namespace seto {

// All transports of a context, in the order of preference: two contexts use the first that reaches from one to the other. If the
// first one reaches all ranks of a communicator, the others are not opened for it.
[[nodiscard]] Result<std::vector<std::unique_ptr<Transport>>> make_transports(const TransportSetup& setup);

// Memory of this process that its peers on the host can read where it lies (decision 41). Code::unavailable: use other memory,
// which serves as well, only slower.
[[nodiscard]] Result<void*> allocate_lendable(std::size_t size);
// Empty: it is not from allocate_lendable().
[[nodiscard]] std::optional<Status> free_lendable(void* memory);

// A network port of this host that data between hosts may take beside TCP, in words: its name, its state, and what is known of
// it.
struct PortWords {
  std::string name, state, remark;
  // The same as values, which are empty or 0 where nothing is known.
  std::string device;
  int port = 0;
  std::string link_layer;
  std::optional<int> gid_index;
  std::string gid;
  std::string why;  // this GID; or why the port cannot be used
  int mtu = 0;
  int rate_mbit = 0;
};
// Empty: the kernel lists none. Failure: there are RDMA devices, but no library for them.
[[nodiscard]] Result<std::vector<PortWords>> rdma_ports();

// How each RDMA device of this host that the settings permit reaches the GPU of the buffer, by a trial. Empty: there are none.
[[nodiscard]] std::vector<GpuReach> rdma_reach(const Config& config, GpuBuffer& buffer, Deadline until);

}  // namespace seto
