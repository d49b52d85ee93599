#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "transports/rdma/verbs/port_facts.h"
#include "transports/rdma/verbs/requests.h"

// The verbs that the transport uses, as interfaces: libibverbs.h implements them for hardware, tests/support/fake_verbs.h in
// memory. No call blocks. An object outlives all that was made from it; the device is safe from any thread, and the rest is used
// by one thread at a time.
namespace seto::rdma {

// Memory that a device may read, and that peers with its remote key may write.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  [[nodiscard]] virtual std::uint32_t local_key() const = 0;
  [[nodiscard]] virtual std::uint32_t remote_key() const = 0;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Returns how many completions it wrote.
  virtual Result<std::size_t> poll(std::span<Completion> completions) = 0;
  // The next completion makes descriptor() readable. The caller polls once more after this call.
  virtual Status arm() = 0;
  [[nodiscard]] virtual int descriptor() const = 0;
  // Takes the events that made the descriptor readable.
  virtual void take_events() = 0;
  // It holds so many completions from now on, those that wait in it included. After a failure it is as it was.
  virtual Status grow(std::uint32_t depth) = 0;
};

// A reliable connection between two queue pairs.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  [[nodiscard]] virtual std::uint32_t number() const = 0;
  [[nodiscard]] virtual std::uint32_t most_inline() const = 0;
  // Receive requests may be posted after this call, sends after connect().
  virtual Status prepare(const QueuePairPath& path) = 0;
  virtual Status connect(const QueuePairPath& path) = 0;
  // Posts the requests with one doorbell, in order. Returns how many were accepted: fewer than all if the queue is full.
  virtual Result<std::size_t> post(std::span<const SendRequest> requests) = 0;
  virtual Result<std::size_t> post(std::span<const ReceiveRequest> requests) = 0;
  // All requests end, those under way with CompletionStatus::flushed.
  virtual void fail() = 0;
};

// Memory of another device, a GPU for example, as the kernel hands it from driver to driver.
struct DmaBuf {
  int descriptor = -1;        // the caller's; the registration needs it no longer than the call
  std::uint64_t offset = 0;   // in the dma-buf
  std::uint64_t address = 0;  // of that memory in requests of both ends; its offset within a page is that of `offset`
  std::size_t size = 0;
};

class VerbsDevice {
 public:
  virtual ~VerbsDevice() = default;
  [[nodiscard]] virtual Result<DeviceFacts> facts() = 0;  // asks the device again
  virtual Result<std::unique_ptr<MemoryRegion>> register_memory(std::byte* memory, std::size_t size) = 0;
  // The same where the device may write in any order (relaxed ordering), which is faster on some hosts. A completion says as much
  // as before: all bytes of its request, and of requests before it, are there. Not for memory of a GPU, whose flush counts on
  // the order.
  virtual Result<std::unique_ptr<MemoryRegion>> register_unordered(std::byte* memory, std::size_t size) = 0;
  virtual Result<std::unique_ptr<MemoryRegion>> register_dma_buf(const DmaBuf& memory) = 0;
  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(std::uint32_t depth) = 0;
  // Sends and receives complete on the same queue.
  virtual Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& completions, const QueuePairSize& size) = 0;
  // Readable when next_event() has one.
  [[nodiscard]] virtual int event_descriptor() const = 0;
  [[nodiscard]] virtual std::optional<AsyncEvent> next_event() = 0;
};

class Verbs {
 public:
  virtual ~Verbs() = default;
  // The names of the devices, which may be none.
  [[nodiscard]] virtual Result<std::vector<std::string>> devices() = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<VerbsDevice>> open_device(const std::string& name) = 0;
};

}  // namespace seto::rdma
