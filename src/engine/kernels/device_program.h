#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/kernels/portable.h"

// One rank's part of a collective call as blocks of a GPU execute it: plain data in memory of the device, made from a
// BoundProgram by src/engine/device/device_lowering.h.
//
// Each block executes all steps, in the skewed order, on its own part of every slice. So within a program blocks of one rank
// never wait for each other; a block waits only for the block of the same number on other ranks. Within a block, barriers order
// the steps.
namespace seto::kernels {

// Memory as a rank's GPU sees it. The host writes these numbers and does not follow them.
using Address = std::uint64_t;

template <class T>
SETO_KERNEL T* at(Address address) {
  return reinterpret_cast<T*>(address);
}

// A number that names a message of a stream: operations count from 1, slices of an operation from 1. Marks only grow.
using Mark = std::uint64_t;
inline constexpr int kMarkSliceBits = 24;  // as kSliceBits of transports/geometry.h
SETO_KERNEL Mark mark_of(std::uint64_t operation, std::uint64_t slices) { return operation << kMarkSliceBits | slices; }

// This rank's end of a channel to or from one peer. Slots and `posted` lie in the memory of the receiver, `read` in that of the
// sender: each side polls its own memory and stores to that of its peer. All that a block of number b uses lies b strides further
// on: blocks share neither a slot nor a flag.
struct ChannelEnd {
  Address slots = 0;
  Address posted = 0;              // Mark of the last message that is in the slots
  Address read = 0;                // Mark of the last message that the receiver has read
  std::uint64_t block_stride = 0;  // bytes between the slots of two blocks
  std::uint32_t depth = 1;         // slots of a block
  std::uint32_t slot_size = 0;     // bytes, of one block
};
inline constexpr std::size_t kFlagStride = 64;  // bytes between two flags that different blocks or ranks write
// Words from `posted` to the address of the message, where the sender lends it: it stays in the sender's buffers.
inline constexpr std::size_t kLentPlace = 1;

// Messages of an exchange of short messages (decision 50): each word of 8 bytes has 4 bytes of data, and above them a mark that
// names the exchange. Exchanges count from 1, apart from operations with flags. They use an area of their own in each workspace,
// which holds nothing but such words: one place for each sender, with two slots.
inline constexpr std::size_t kMarkedPlace = std::size_t{256} << 10;
inline constexpr std::size_t kMarkedArea = std::size_t{128} << 10;
inline constexpr std::uint32_t kMarkedSlots = 2;
inline constexpr std::size_t kDataOfWord = 4;  // bytes
inline constexpr int kMarkShift = 32;
// After so many exchanges marks begin again, when the areas have been cleared.
inline constexpr std::uint64_t kExchangesOfAge = std::uint64_t{1} << 31;
// Never 0, which is what an unused word has.
SETO_KERNEL std::uint32_t mark_of_exchange(std::uint64_t exchange) {
  return static_cast<std::uint32_t>(exchange % kExchangesOfAge) + 1;
}
// Words from a flag of PeerEnd to that by which ranks meet before they use marks again.
inline constexpr std::size_t kMeeting = 1;

// How this rank and another one tell each other which operations they have done. Slots and flags of one operation may lie over
// those of the operation before, so no rank writes them before all ranks have done that one.
struct PeerEnd {
  Address done_here = 0;   // number of the peer's last operation, in this rank's memory
  Address done_there = 0;  // that of this rank, in the peer's memory
};

// From `channel` on it is a message. One that is lent lies in the caller's buffers at the sender, which has no slot for it; at
// the receiver both kinds of lent messages are alike.
enum class OperandSpace : std::uint32_t { input, output, scratch, channel, lent_input, lent_output };
SETO_KERNEL bool is_message(OperandSpace space) { return space >= OperandSpace::channel; }
SETO_KERNEL bool is_lent(OperandSpace space) { return space > OperandSpace::channel; }

struct DeviceOperand {
  OperandSpace space = OperandSpace::input;
  std::uint32_t end = 0;  // of a channel: its index in the program's ends
};

// A step is executed as: wait for the messages that it reads and for the slots that it writes, one pass for each piece, tell the
// peers.
struct DeviceStep {
  std::uint32_t stage = 0;
  std::uint32_t pieces = 1;
  std::uint32_t first_operand = 0;  // sources, then targets; the lent ones come last
  std::uint32_t source_count = 0;
  std::uint32_t target_count = 0;  // with the lent ones
  std::uint32_t first_piece = 0;   // in the program's lengths and residuals
  std::uint32_t first_offset = 0;  // in the program's offsets: for each piece, sources then targets; of a lent one: in its buffer
  std::uint32_t divisor = 1;
  std::uint64_t scaled = 0;  // bit k of a mask is about source or target k
  std::uint64_t coded_sources = 0;
  std::uint64_t coded_targets = 0;
  std::uint16_t moves = 0;
  std::uint16_t rounds = 0;
  std::uint32_t lent_targets = 0;
};
static_assert(sizeof(DeviceStep) == 64);

inline constexpr std::uint64_t kNoDeviceResidual = ~std::uint64_t{0};

// The begin of the program. Tables follow it, at offsets in bytes from its begin.
struct DeviceProgram {
  std::uint64_t size = 0;   // bytes, of all
  std::uint32_t type = 0;   // DataType
  std::uint32_t op = 0;     // ReduceOp
  std::uint32_t codec = 0;  // number of the codec in plans; 0: none
  std::uint32_t blocks = 1;
  std::uint32_t stages = 0;
  std::uint32_t peer_count = 0;
  std::uint64_t slices = 1;
  std::uint64_t slice_elements = 1;
  std::uint64_t part_elements = 1;  // of a slice, that a block works on; the last block's part may be shorter
  std::uint32_t element_size = 1;
  std::uint32_t residual_size = 0;       // bytes, of an element; 0: the program encodes nothing
  std::uint32_t piece_stride = 0;        // bytes between the pieces of a message
  std::uint32_t coded_piece_stride = 0;  // the same where they are encoded
  std::uint32_t lends = 0;               // not 0: some step has lent targets
  std::uint32_t marked = 0;              // not 0: an exchange of marked messages, of one slice and one block

  std::uint32_t first_steps = 0;  // std::uint32_t by stage, and one more: the number of its first step
  std::uint32_t steps = 0;        // DeviceStep, in the order of their stages
  std::uint32_t operands = 0;     // DeviceOperand
  std::uint32_t ends = 0;         // ChannelEnd
  std::uint32_t peers = 0;        // PeerEnd
  std::uint32_t lengths = 0;      // std::uint64_t: elements of each piece
  std::uint32_t residuals = 0;    // std::uint64_t: bytes, or kNoDeviceResidual
  std::uint32_t offsets = 0;      // std::uint64_t: bytes, of operands in memory

  template <class T>
  SETO_KERNEL const T* table(std::uint32_t offset) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(this) + offset);
  }
};

inline constexpr std::uint32_t kMostDeviceSteps = 1U << 24;
inline constexpr std::uint32_t kMostDeviceOperands = 128;  // of a step

}  // namespace seto::kernels
