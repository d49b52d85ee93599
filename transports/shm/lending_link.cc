#include "transports/shm/lending_link.h"

#include <string>
#include <utility>

#include "src/base/log.h"
#include "transports/shm/local_notice.h"
#include "transports/shm/user_memory.h"

namespace seto {

void LendingLink::offer() {
  if (offered_.load(std::memory_order_relaxed) || offered_.exchange(true, std::memory_order_relaxed)) return;
  // Where the queue is full, the next operation tries again.
  if (!send_memory(socket_.get(), UserMemory::of_process().descriptor())) offered_.store(false, std::memory_order_relaxed);
}

void LendingLink::map(Fd memory) {
  if (segment_) return;  // only a process that is out of order offers twice
  Result<Segment> mapped = memory.valid() ? Segment::map(memory.get(), kSegmentLimit, Segment::Access::read)
                                          : failure(Code::unavailable, "this process has no free descriptor; raise ulimit -n");
  if (!mapped.ok()) {
    SETO_LOG(info, "messages from another process of this host go through slots, though they lie in memory of setoMemAlloc: %s",
             std::string(mapped.status().text()).c_str());
    return;
  }
  segment_ = std::move(mapped).value();
  theirs_.set(segment_->data(), segment_->size());
  (void)send_memory_mapped(socket_.get());
}

}  // namespace seto
