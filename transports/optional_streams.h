#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transports/geometry.h"

// Interfaces that a stream may offer in addition to SendStream or ReceiveStream.
namespace seto {

class HostCopy;

// Sends from the caller's memory without a copy into a slot. lend() replaces acquire() for every slice of an operation.
class LendingSender {
 public:
  virtual ~LendingSender() = default;

  // The message of slice s is at `first + s * stride`, the same values for every slice of the operation. Once committed it must
  // not change until taken() is true. False: no credit yet.
  virtual bool lend(Mark mark, const std::byte* first, std::size_t stride) = 0;
  // Nothing reads the memory lent for the operation any more.
  [[nodiscard]] virtual bool taken(std::uint64_t operation) = 0;
  // Takes the lent memory back because the operation failed. True: nothing reads it, now or later. False: call again.
  virtual bool revoke(std::uint64_t operation) = 0;
};

// Sends messages that lie in memory of a GPU, where a device of the medium reads them (GpuMemory, transports/gpu_buffer.h).
class GpuSender {
 public:
  virtual ~GpuSender() = default;

  // Devices read that memory on each way that messages of the stream take now.
  [[nodiscard]] virtual bool reads(const std::byte* memory, std::size_t size) = 0;
  struct Part {
    const std::byte* data = nullptr;
    std::size_t size = 0;
  };
  // In the place of acquire() and commit() for one slice: the message consists of these parts, none of which is empty. They stay
  // as they are until is_free(). `host` brings them to the host where no device reads them any more. False: no slot is free, or
  // no credit.
  virtual bool send_parts(Mark mark, std::span<const Part> parts, const std::shared_ptr<HostCopy>& host) = 0;
  // Nothing reads the message any more. Only for the last slices, as many as the stream has slots.
  [[nodiscard]] virtual bool is_free(Mark mark) const = 0;
  // The owner wants the memory back, though the peer has not acknowledged it: what is needed of it is brought to the host. True:
  // nothing reads it. False: call again.
  virtual bool give_back(Mark mark) = 0;
  // The same because the operation failed: what was not begun is not sent.
  virtual bool take_back(Mark mark) = 0;
};

// Messages carry the size that their sender committed. The caller compares it with the expected size before it reads.
class SizedReceiver {
 public:
  virtual ~SizedReceiver() = default;

  // False: the message has another size (see PeerGroup::failure). Called after front() returned the message.
  virtual bool has_size(Mark mark, std::size_t size) = 0;
};

// Messages may be in the sender's own memory (LendingSender) and can be revoked. The caller reads a message only between hold()
// and release(), or let_go() if it wants to read the message again later.
class BorrowingReceiver {
 public:
  virtual ~BorrowingReceiver() = default;

  // False: the sender revoked the message.
  virtual bool hold(Mark mark) = 0;
  virtual void let_go(Mark mark) = 0;
};

// The destination of an operation's messages: slice s belongs at `first + s * stride`, all slices together fill `size` bytes.
struct Placement {
  std::uint64_t operation = 0;
  std::byte* first = nullptr;
  std::size_t stride = 0;
  std::size_t size = 0;
  std::uint64_t until = 0;  // slices below it may be written from now on; nothing else touches their destination

  [[nodiscard]] std::size_t size_of(std::uint64_t slice) const {
    return slice < until && slice * stride < size ? std::min(stride, size - slice * stride) : 0;
  }
};

// The transport copies bytes itself, so it can copy them to their final destination. A permission, not an obligation: front()
// returns where the message is.
class PlacingReceiver {
 public:
  virtual ~PlacingReceiver() = default;

  // Called before or while messages arrive, and again with a larger `until`. A message that arrived earlier, or has an unexpected
  // size, is kept in a buffer of the transport.
  virtual void place(const Placement& placement) = 0;
  // The operation failed: nothing is written to its destination after this call.
  virtual void displace(std::uint64_t operation) = 0;
};

}  // namespace seto
