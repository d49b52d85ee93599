#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/result.h"
#include "src/core/host_stream/host_stream.h"

namespace seto {

// The host streams of this process by number. The number of a destroyed stream is reused only after 2^32 other streams had its
// slot. Any thread.
class StreamTable final {
 public:
  using Handle = std::uint64_t;

  static StreamTable& of_process();

  Result<Handle> create();
  Result<std::shared_ptr<HostStream>> find(Handle handle) const;
  // Removes the stream from the table and waits for what is queued, whatever its result.
  Status destroy(Handle handle);

 private:
  struct Slot {
    std::uint32_t generation = 0;
    std::shared_ptr<HostStream> stream;
  };

  Result<std::shared_ptr<HostStream>> find_locked(Handle handle) const;

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
};

}  // namespace seto
