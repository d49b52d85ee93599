#pragma once

#include <cstdint>
#include <memory>

#include "src/core/connect/connected_ranks.h"
#include "src/core/connect/context.h"

namespace seto {

// Holds what slower peers may still read after this rank has destroyed its end of a communicator: the lines and slots of its last
// operations until the peers are past them, and its board until they have departed too, because the board says how this rank
// left.
class DeferredCleanup final : public Context::Cleanup {
 public:
  struct Parts {
    Connections connections;  // by rank; null: this rank
    std::shared_ptr<PeerGroup> peer_group;
    std::shared_ptr<void> streams;  // of the last operations; destroyed before the peer group
    std::uint64_t issued = 0;       // operations
  };

  explicit DeferredCleanup(Parts parts) : parts_(std::move(parts)) {}

  bool done() override;

 private:
  [[nodiscard]] bool is_past(std::uint32_t peer) const;

  Parts parts_;
};

// How a communicator was used when its end is destroyed.
struct LastOperations {
  std::uint64_t issued = 0;
  bool failed = false;
  std::shared_ptr<void> streams;  // what peers may still read from
};

// Tells the peers that this rank leaves, and keeps in the context what they may still read. Does not wait for them.
void leave_ranks(Context& context, ConnectedRanks ranks, LastOperations last);

}  // namespace seto
