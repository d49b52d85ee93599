#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/engine/bound_program.h"
#include "src/engine/kernels/device_program.h"

namespace seto {

// How the blocks of a GPU divide a call. Every rank of the call uses the same values.
struct DeviceCut {
  std::uint32_t blocks = 1;
  std::uint64_t longest = 1;  // elements of the longest chunk (Layout::longest)
  // By stage: how many rounds a slice reaches it later than stage 0. Empty: a round for each stage.
  std::vector<std::uint32_t> delays = {};

  // The call is one exchange of marked messages (decision 50): one block, one slice, and one message from every rank to every
  // other.
  bool marked = false;

  [[nodiscard]] std::uint32_t delay_of(std::uint32_t stage) const { return delays.empty() ? stage : delays[stage]; }
};

// The layout of a block's share of a slice. It follows from the call alone, so both ends of a channel agree about it.
struct DeviceGeometry {
  std::uint64_t part_elements = 1;
  std::uint32_t piece_stride = 0;        // bytes between the pieces of a message
  std::uint32_t coded_piece_stride = 0;  // the same where they are encoded

  static Result<DeviceGeometry> of(const BoundProgram& program, const DeviceCut& cut);
  [[nodiscard]] std::uint64_t slot_size(std::uint32_t pieces, bool coded) const {
    return std::uint64_t{pieces} * (coded ? coded_piece_stride : piece_stride);
  }
};

// This rank's ends of what it shares with other ranks.
struct DeviceEnds {
  std::vector<std::vector<kernels::ChannelEnd>>
      streams;                          // in the order of the program's streams; of one that it sends, by receiver
  std::vector<kernels::PeerEnd> peers;  // all other ranks
};

// Makes the device program of a lowered program. A step is executed whole, so a plain program, whose lanes need a worker each, is
// refused.
Result<std::vector<std::byte>> lower_to_device(const BoundProgram& program, const DeviceCut& cut, const DeviceEnds& ends);

}  // namespace seto
