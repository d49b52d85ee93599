#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "src/base/result.h"
#include "transports/slots/board_status.h"
#include "transports/slots/boards.h"

namespace seto::slots {

// The slots that this member's streams fill, leased from the pool. A lease belongs to one target (a receiver or a multicast
// group) of a port and is kept from operation to operation, whichever stream uses it.
class SlotLeases final {
 public:
  struct Lease {
    std::size_t offset = 0;
    std::size_t size = 0;
    std::uint64_t operation = 0;  // the last operation that filled the slots
    std::uint64_t user = 0;       // the stream that filled them
    std::size_t next = 0;         // where the slots of its next operation begin, if they move on
    bool refused = false;         // there was no spare memory for a larger one
  };

  // The leases that streams of one port to one target use, one after another.
  struct Use {
    // As many as operations in flight; a stream that continues in the slots of its last operation does not use the second one.
    std::array<Lease, kWindow> leases;
    std::array<std::uint64_t, kWindow> line_users{};  // by window: the stream that used the line last
  };

  SlotLeases(const Boards& boards, const BoardStatus& status) : boards_(boards), status_(status) {}

  // Lives as long as this object. Allocates memory when the first stream of that port and target is opened.
  Use& use_of(std::uint32_t port, std::uint32_t target) { return in_use_[{port, target}]; }
  // Makes the lease at least as large as `size`, and as large as `wanted` if there is memory for it, on that NUMA node if it has
  // to be another one.
  Status grow(Lease& lease, std::size_t size, std::size_t wanted, int node);
  // Returns all slots to the pool that no receiver may still read. The rest stays leased for as long as the pool lives, unless
  // this is called again.
  void give_back();

 private:
  [[nodiscard]] bool still_read(std::uint32_t target, std::uint64_t operation) const;

  const Boards& boards_;
  const BoardStatus& status_;
  // By port and target: a large group has far more of both than its plans use.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Use> in_use_;
};

}  // namespace seto::slots
