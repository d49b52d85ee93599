#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "src/base/fd.h"
#include "transports/shm/segment.h"

namespace seto {

// A context's memory and its bell, as other contexts of the same process share them: mapped once, so that both sides see one
// address. Lives as long as any of them uses it.
struct SharedSegment {
  Segment segment;
  Fd bell;  // eventfd
};

// Of the process: which contexts it has. Any thread; control path only.
class SharedSegments final {
 public:
  static SharedSegments& of_process();

  void add(std::uint64_t context, const std::shared_ptr<SharedSegment>& segment);
  void remove(std::uint64_t context);
  // Null: no such context, or no longer.
  [[nodiscard]] std::shared_ptr<SharedSegment> find(std::uint64_t context);

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<SharedSegment>> by_context_;
};

}  // namespace seto
