#pragma once

#include <cstddef>
#include <memory>

#include "include/seto/seto.h"
#include "src/device/cuda/driver.h"

namespace seto::bench {

// The GPU of a rank: its context, which stays current in the thread, its stream and its memory.
class Gpu final {
 public:
  // GPU rank modulo their number.
  static Result<std::unique_ptr<Gpu>> open(int rank);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] Result<std::byte*> allocate(std::size_t size) const;
  [[nodiscard]] Status free(std::byte* memory) const;
  // In the order of the stream; these wait for their end.
  [[nodiscard]] Status copy_in(std::byte* memory, const std::byte* from, std::size_t size) const;
  [[nodiscard]] Status copy_out(std::byte* to, const std::byte* memory, std::size_t size) const;
  [[nodiscard]] Status fill(std::byte* memory, int byte, std::size_t size) const;
  [[nodiscard]] Status synchronize() const;

  // Between these two, what this thread queues on the stream is recorded and does not run. A recording replaces the one before.
  [[nodiscard]] Status begin_recording();
  [[nodiscard]] Status end_recording();
  // Queues all that was recorded.
  [[nodiscard]] Status launch_recording() const { return driver_->graph_launch(recording_, stream_); }
  [[nodiscard]] Status drop_recording();

  [[nodiscard]] setoStream_t stream() const { return reinterpret_cast<setoStream_t>(stream_); }

 private:
  explicit Gpu(std::unique_ptr<const cuda::Driver> driver) : driver_(std::move(driver)) {}
  Status start(int rank);

  std::unique_ptr<const cuda::Driver> driver_;
  cuda::Stream stream_ = nullptr;
  cuda::GraphExec recording_ = nullptr;
};

}  // namespace seto::bench
