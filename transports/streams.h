#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transports/geometry.h"

namespace seto {

class LendingSender;
class GpuSender;
class SizedReceiver;
class BorrowingReceiver;
class PlacingReceiver;

// The sending end of a stream. For each slice of an operation, in slice order: acquire, fill, commit. Two consecutive operations
// may be in flight on one stream.
//
// No call blocks, allocates memory or calls back. An optional interface (transports/optional_streams.h) is queried once, when a
// launch is bound; null: the stream does not offer it. The pointer is valid as long as the stream.
class SendStream {
 public:
  virtual ~SendStream() = default;

  // The buffer for the message, or nullptr: no slot is free yet. Repeated calls return the same buffer until the commit.
  virtual std::byte* acquire(Mark mark) = 0;
  // Sends the first `size` bytes of the message. The caller has fenced its streaming stores into the buffer.
  virtual void commit(Mark mark, std::size_t size) = 0;
  // All in one, for a message of a byte or more that lies in memory as it is sent. False: no slot is free, nothing was sent.
  virtual bool send(Mark mark, const std::byte* message, std::size_t size) {
    std::byte* const slot = acquire(mark);
    if (slot == nullptr) return false;
    std::memcpy(slot, message, size);
    commit(mark, size);
    return true;
  }

  // ---- positions of one operation ----
  // Each is a number of slices: all slices below it have reached that state. For the two newest operations of the stream. A
  // position only grows, may lag behind the truth, never runs ahead of it, and released <= acknowledged <= handed over holds.

  // The slices are with the medium: in shared memory (a lent message stays where it is), in the kernel, or with the NIC.
  [[nodiscard]] virtual std::uint64_t handed_over(std::uint64_t operation) const = 0;
  // The transport of every receiver has all bytes of the slices, or the receiver has completed the operation.
  [[nodiscard]] virtual std::uint64_t acknowledged(std::uint64_t operation) const = 0;
  // Every receiver has released the slices, or has completed the operation.
  [[nodiscard]] virtual std::uint64_t released(std::uint64_t operation) const = 0;

  // ---- optional interfaces ----

  [[nodiscard]] virtual LendingSender* lending() { return nullptr; }
  [[nodiscard]] virtual GpuSender* from_gpu() { return nullptr; }
};

// The receiving end of a stream. For each slice of an operation, in slice order: front, read in place, release.
class ReceiveStream {
 public:
  virtual ~ReceiveStream() = default;

  // The message, or nullptr: it has not arrived, or never will (see PeerGroup::failure). Repeated calls return the same address
  // until the release.
  virtual const std::byte* front(Mark mark) = 0;
  // The caller reads the message no more. Returns credit to the sender.
  virtual void release(Mark mark) = 0;

  // ---- optional interfaces ----

  [[nodiscard]] virtual SizedReceiver* sized() { return nullptr; }
  [[nodiscard]] virtual BorrowingReceiver* borrowing() { return nullptr; }
  [[nodiscard]] virtual PlacingReceiver* placing() { return nullptr; }
};

}  // namespace seto
