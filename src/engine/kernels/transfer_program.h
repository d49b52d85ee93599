#pragma once

#include <cstddef>
#include <cstdint>

#include "src/engine/kernels/device_program.h"

// Sends and receives of one rank as blocks of a GPU execute them: plain data in memory that the GPU reads, made by
// src/engine/device/device_transfers.h.
//
// Only the two ranks of a message know of it, so they cannot lay out channels for it, nor number it as an operation. Every pair
// of ranks therefore has channels of its own in an area of the workspaces that never changes. The slices of a channel are counted
// from the first message of the communicator on, by both ends, in their own memory. A slot carries what its sender believes to
// send, so that a receiver with other beliefs finds out.
namespace seto::kernels {

// The begin of a slot. The content follows at the next line.
struct SliceHeader {
  std::uint64_t size = 0;  // bytes of the whole message
  std::uint64_t label = 0;
};
inline constexpr std::uint32_t kSliceHeaderSize = 128;

// One end of a channel, in this rank's own workspace.
struct TransferState {
  std::uint64_t count = 0;    // slices that were moved by all launches
  std::uint32_t message = 0;  // of the launch under way; 0 between launches
  std::uint32_t slices = 0;   // of that message, which this channel has moved
};

// The messages that one channel moves in one direction, one after another. The channels of a pair take the slices of each message
// in turn; the first slice of every message, which may be empty, goes through channel 0.
struct TransferLane {
  Address slots = 0;   // in the workspace of the receiver
  Address posted = 0;  // count of slices that are in the slots; in the workspace of the receiver
  Address read = 0;    // count of slices that the receiver has read; in the workspace of the sender
  Address state = 0;   // TransferState
  std::uint32_t first_message = 0;
  std::uint32_t message_count = 0;
  std::uint32_t channel = 0;
  std::uint32_t report = 0;  // its place in the reports
  std::uint64_t sends = 0;   // 0: it receives
};

struct TransferMessage {
  Address memory = 0;
  std::uint64_t size = 0;
  std::uint64_t label = 0;
  std::uint64_t numbered = 0;  // not 0: it belongs to an exchange, whose number is added to the label
};
inline constexpr int kLabelNumberBits = 16;  // of a label: below its number

// A message of a rank to itself.
struct TransferCopy {
  Address source = 0;
  Address target = 0;
  std::uint64_t size = 0;
};

// The begin of the program. Tables follow it, at offsets in bytes from its begin.
struct TransferProgram {
  std::uint32_t blocks = 1;
  std::uint32_t lane_count = 0;
  std::uint32_t copy_count = 0;
  std::uint32_t channels = 1;      // of a pair
  std::uint32_t depth = 1;         // slots of a channel
  std::uint32_t slot_content = 0;  // bytes of a slice
  std::uint32_t lanes = 0;         // TransferLane
  std::uint32_t messages = 0;      // TransferMessage
  std::uint32_t copies = 0;        // TransferCopy
  std::uint32_t unused = 0;

  template <class T>
  SETO_KERNEL const T* table(std::uint32_t offset) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(this) + offset);
  }
};

// The end of a lane, in memory of the host.
struct TransferReport {
  std::uint64_t state = 0;    // launch << kReportBits | TransferOutcome
  std::uint64_t message = 0;  // of the lane, at which it ended
  std::uint64_t own_size = 0, own_label = 0;
  std::uint64_t their_size = 0, their_label = 0;  // refused: what the sender says
};
enum class TransferOutcome : std::uint32_t { unknown, done, stopped, refused };
inline constexpr int kReportBits = 8;

// One launch.
struct TransferArguments {
  Address program = 0;
  Address reports = 0;         // TransferReport by place
  Address stop = 0;            // std::uint32_t, in eight bytes of its own
  std::uint64_t launch = 0;    // its number, for reports
  std::uint64_t exchange = 0;  // added to the numbers of exchanges
};

}  // namespace seto::kernels
