#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/result.h"
#include "src/core/host_stream/host_stream.h"

namespace seto {

// The host streams of this process by number. A number names one stream, ever: that of a destroyed one is not given again until
// 2^32 others had its place. Any thread.
class HostStreams final {
 public:
  using Handle = std::uint64_t;

  static HostStreams& of_process();

  Result<Handle> create();
  Result<std::shared_ptr<HostStream>> find(Handle handle) const;
  // No longer to be found; waits for what is queued, whatever becomes of it.
  Status destroy(Handle handle);

 private:
  struct Place {
    std::uint32_t generation = 0;
    std::shared_ptr<HostStream> stream;
  };

  Result<std::shared_ptr<HostStream>> find_locked(Handle handle) const;

  mutable std::mutex mutex_;
  std::vector<Place> places_;
};

}  // namespace seto
