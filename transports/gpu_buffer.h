#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

// Memory of a GPU from which devices of a medium may send. The CPU reads none of it: its addresses are mapped for devices only.
struct GpuMemory {
  std::byte* address = nullptr;
  std::size_t size = 0;
  int dma_buf = -1;             // of this memory, open as long as the memory has its name; -1: there is none
  std::vector<GpuReach> reach;  // of devices that a trial has shown to read memory of this GPU; others do not
};

// Brings a message that lies in such memory to memory of the host, where it must go another way. Nothing blocks. Any thread.
class HostCopy {
 public:
  virtual ~HostCopy() = default;
  // Where the bytes of that place are on the host. Null: they are on their way there; call again. The first call begins to bring
  // the whole message, once. A failure: they will never be there, and the text says what to do.
  virtual Result<const std::byte*> bring(const std::byte* place) = 0;
  // The same, but nothing is begun. Null: they are not on the host.
  [[nodiscard]] virtual const std::byte* brought(const std::byte* place) const = 0;
};

}  // namespace seto
