#include "transports/slots/slot_leases.h"

#include <optional>

namespace seto::slots {

Status SlotLeases::grow(Lease& lease, std::size_t size, std::size_t wanted, int node) {
  if (lease.size >= wanted || (lease.size >= size && lease.refused)) return {};
  Pool& pool = *boards_.setup().pool;
  std::optional<std::size_t> offset;
  if (wanted > size && !lease.refused) offset = pool.lease_spare(wanted, node);
  lease.refused = wanted > size && !offset;
  const std::size_t leased = offset ? wanted : size;
  if (lease.size >= leased) return {};
  if (!offset) {
    SETO_ASSIGN(offset, pool.lease(size, node));
  }
  if (lease.size > 0) pool.give_back(lease.offset, lease.size);
  lease.offset = *offset;
  lease.size = leased;
  lease.next = 0;
  return {};
}

void SlotLeases::give_back() {
  for (auto& [port_and_target, use] : in_use_)
    for (Lease& lease : use.leases) {
      if (lease.size == 0 || still_read(port_and_target.second, lease.operation)) continue;
      boards_.setup().pool->give_back(lease.offset, lease.size);
      lease.size = 0;
    }
}

// Whether a receiver may still read slots that were filled in this operation. A member that has left returns an error to its
// caller and reads nothing.
bool SlotLeases::still_read(std::uint32_t target, std::uint64_t operation) const {
  for (std::uint32_t member = 0; member < boards_.layout().members(); ++member) {
    if (member == boards_.own() || (target < boards_.layout().members() && target != member)) continue;
    if (status_.completed_by(member) < operation && !status_.gone(member)) return true;
  }
  return false;
}

}  // namespace seto::slots
