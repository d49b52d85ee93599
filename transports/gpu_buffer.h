#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/base/fd.h"
#include "src/base/result.h"

namespace seto {

// Some memory of a GPU, with which a medium tries whether its devices reach that GPU. The host touches its bytes by the calls
// only.
class GpuBuffer {
 public:
  virtual ~GpuBuffer() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;  // of whole pages of the GPU
  [[nodiscard]] virtual std::size_t size() const = 0;
  // The memory for drivers of other devices. A failure says why the GPU or its driver offers none.
  virtual Result<Fd> dma_buf() = 0;
  // From and to the beginning. They return when the bytes have moved.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  virtual Status read(std::span<std::byte> bytes) = 0;
  // After success, the GPU reads what devices have written and reported. A failure: nothing ensures that.
  virtual Status flush() = 0;
};

// How a device of a medium reaches memory of a GPU.
enum class GpuWay : std::uint8_t {
  dma_buf,  // the kernel hands the memory from driver to driver
  peermem,  // a module of the GPU's maker tells the pages of its addresses
  bounce,   // not at all: messages are copied through pinned memory of the host
};

struct GpuReach {
  std::string device;
  GpuWay way = GpuWay::bounce;
  bool writes = false;   // the device also writes there, so that the GPU reads it. Else it only reads, or bounces.
  std::string why_less;  // why not a better way, or why it does not write; empty: there is no better one
};
[[nodiscard]] inline const char* name_of(GpuWay way) {
  return way == GpuWay::dma_buf ? "dma-buf" : way == GpuWay::peermem ? "peermem" : "pinned memory of the host";
}

}  // namespace seto
