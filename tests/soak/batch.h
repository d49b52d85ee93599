#pragma once

#include <memory>
#include <vector>

#include "tests/soak/exchange.h"
#include "tests/soak/job.h"

namespace seto::soak {

// The two host streams of one thread.
class Streams final {
 public:
  Streams();
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  [[nodiscard]] setoStream_t operator[](std::size_t index) const { return streams_[index % 2]; }

 private:
  setoStream_t streams_[2] = {};
};

enum class Manner : std::uint8_t { blocking, streams, group, group_on_stream };
inline constexpr int kManners = 4;

using Batch = std::vector<std::unique_ptr<Exchange>>;

// Issues all calls and waits for them. The buffers are unused when it returns, also after a failure.
CallResult run(const Batch& batch, Manner manner, const Streams& streams);
// The same, and then checks and counts every byte.
Problem run_checked(const Batch& batch, Manner manner, const Streams& streams, Tally& tally);
Problem check(const Batch& batch, Tally& tally);

}  // namespace seto::soak
