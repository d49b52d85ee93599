#pragma once

#include <cstdint>
#include <map>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/device/cuda/driver_types.h"

namespace seto {

// The streams on which the ranks of one communicator, as far as they are in this process, have launched. Two of them on one
// stream would wait for each other for ever: the kernel of the second starts after the end of the first. Any thread.
class StreamUsers final {
 public:
  // `token` names the communicator.
  StreamUsers(std::uint64_t token, Rank rank, cuda::Context context);
  ~StreamUsers();
  StreamUsers(const StreamUsers&) = delete;
  StreamUsers& operator=(const StreamUsers&) = delete;

  // Fails if another rank has launched this operation, or a later one, on this stream.
  Status take(cuda::Stream stream, std::uint64_t operation);

 private:
  const std::uint64_t token_;
  const Rank rank_;
  const cuda::Context context_;
  std::map<cuda::Stream, std::uint64_t> last_;  // operation
};

}  // namespace seto
