#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "src/core/call/error_feedback.h"
#include "src/core/device_memory/gpu_context.h"

namespace seto {

enum class ArenaMemory : std::uint8_t { device, pinned };  // pinned: memory of the host that the GPU copies from

// Memory of an arena that becomes larger.
struct GrowingMemory {
  std::uint64_t address = 0;
  std::size_t size = 0;
};

// Memory that is taken from the driver in large pieces and given back to it only at the end: freeing waits for all kernels, and a
// kernel may wait for a peer. The context is current in all calls. One thread at a time.
class DeviceArena final {
 public:
  static constexpr std::size_t kPiece = std::size_t{256} << 10;

  DeviceArena(const cuda::Driver& driver, ArenaMemory memory) : driver_(driver), memory_(memory) {}
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // Aligned to 256 bytes.
  Result<cuda::DevicePointer> allocate(std::size_t size);
  // Takes the first piece, which would else be taken while kernels run.
  Status prepare();
  // In place of that: the first piece is memory of the caller, which lives longer.
  void begin_with(cuda::DevicePointer begin, std::size_t size) { free_.emplace(begin, size); }
  // At least so many bytes, at an address that may change. What was given before stays valid until the end.
  Result<std::uint64_t> grow(GrowingMemory& memory, std::size_t size);
  // For the next allocations.
  void release(cuda::DevicePointer pointer);

 private:
  static constexpr std::size_t kAlignment = 256;

  Result<cuda::DevicePointer> take_piece(std::size_t size);

  const cuda::Driver& driver_;
  const ArenaMemory memory_;
  std::vector<cuda::DevicePointer> pieces_;
  std::map<cuda::DevicePointer, std::size_t> free_;
  std::map<cuda::DevicePointer, std::size_t> used_;
};

// The residuals of a state of error feedback. Their memory belongs to the communicator, because graphs may use it until its end.
class DeviceResiduals final : public FeedbackMemory {
 public:
  // The context is current.
  static Result<std::shared_ptr<DeviceResiduals>> create(std::shared_ptr<GpuContext> gpu, cuda::DevicePointer address,
                                                         std::size_t size);
  // By a call that was not captured: graphs are not known here.
  bool is_used() override;
  Status clear() override;
  Status read(std::span<std::byte> into) override;
  Status write(std::span<const std::byte> from) override;

  // The context is current in these. Before a kernel in the stream, and after it; and for a kernel of a graph.
  Status before_launch(cuda::Stream stream);
  Status after_launch(cuda::Stream stream);
  Status before_capture();
  // The communicator has ended.
  void end();
  [[nodiscard]] cuda::DevicePointer address() const { return address_; }
  [[nodiscard]] bool is_in_graph() const { return is_in_graph_; }

 private:
  DeviceResiduals(std::shared_ptr<GpuContext> gpu, cuda::DevicePointer address, std::size_t size)
      : gpu_(std::move(gpu)), address_(address), size_(size) {}
  // Runs the work in a stream of its own, and waits for it.
  template <class Work>
  Status run(const Work& work);

  const std::shared_ptr<GpuContext> gpu_;
  const cuda::DevicePointer address_;
  const std::size_t size_;
  std::mutex mutex_;
  cuda::Event last_ = nullptr;  // after the last kernel that uses it
  bool is_launched_ = false;
  bool is_clear_ = true;  // until the next use the memory holds something else
  bool has_ended_ = false;
  std::atomic<bool> is_in_graph_{false};
};

}  // namespace seto
