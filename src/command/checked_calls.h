#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "include/seto/seto.h"

namespace seto::command {

// Calls of a communicator between ranks that measure. The first failure is kept, and after it every further call does nothing. A
// call that waits for half a minute fails.
class CheckedCalls final {
 public:
  explicit CheckedCalls(setoComm_t comm);

  void send(const void* data, std::size_t size, int peer);
  void receive(void* data, std::size_t size, int peer);
  void barrier();
  // `size` bytes of each rank, to all ranks.
  void gather(const void* own, void* all, std::size_t size);
  // The sums over all ranks.
  void add(double* values, std::size_t count);

  [[nodiscard]] bool ok() const { return failure_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  void note(setoResult_t result);

  setoComm_t comm_;
  setoCallConfig_t config_ = SETO_CALL_CONFIG_INITIALIZER;
  std::string failure_;
};

}  // namespace seto::command
