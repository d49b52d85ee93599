#pragma once

#include <atomic>
#include <optional>

#include "src/base/fork.h"
#include "transports/shm/segment.h"
#include "transports/slots/lendable_memory.h"

namespace seto {

// Lending between this process and another one of the host, over the socket between them. A process offers its memory when it has
// something to lend for the first time. The control thread of the other one maps all of it, for reading, and replies. So a
// process that allocates nothing with setoMemAlloc has no file, and its peers map nothing. The mapping ends with the socket.
class LendingLink final : public slots::LendingPartner {
 public:
  explicit LendingLink(const PrivateFd& socket) : socket_(socket) {}

  void offer() override;

  // On the control thread: the other process has offered its memory, or has mapped that of this process.
  void map(Fd memory);
  void be_read() { reads_ours_.store(true, std::memory_order_release); }

 private:
  const PrivateFd& socket_;
  std::atomic<bool> offered_{false};
  std::optional<Segment> segment_;
};

}  // namespace seto
