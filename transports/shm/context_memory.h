#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "src/base/wakeup.h"
#include "transports/shm/segment.h"

namespace seto {

// First page of every context's memory.
struct MemoryHead {
  std::atomic<std::uint32_t> armed;       // the context sleeps or is about to
  std::atomic<std::uint32_t> departures;  // written by peers; see slots::Member
  // Heartbeat counter of its process, on a cache line that only the control threads touch.
  alignas(64) std::atomic<std::uint64_t> beats;
};
inline constexpr std::size_t kMemoryHeadSize = kSegmentPage;

// The memory of a context as it is mapped here, and what ends the sleep of the context. Lives as long as any context of this
// process uses it.
struct ContextMemory {
  Segment segment;
  std::shared_ptr<const Wakeup> wakeup;

  [[nodiscard]] MemoryHead& head() const { return *reinterpret_cast<MemoryHead*>(segment.data()); }
};

}  // namespace seto
