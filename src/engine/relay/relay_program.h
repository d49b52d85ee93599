#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/engine/device/device_channels.h"
#include "src/engine/relay/gpu_slots.h"

namespace seto {

// The messages of one rank's part of a call that a relay carries between the rank's staging memory and the streams of a peer
// group. A message of a stream holds the parts of all blocks, and only their bytes: gaps between pieces stay here. Plain data.
struct RelayProgram {
  struct Channel {
    RelayedChannel end;
    std::vector<std::uint64_t> lengths;  // elements of each piece of its messages
    bool coded = false;
    std::size_t piece_stride = 0;
    bool in_gpu = false;  // its slots are those of GpuSlots, and it sends
  };

  // `channels`: DeviceChannels::relayed_of this program's rank.
  static Result<RelayProgram> of(const BoundProgram& program, const DeviceCut& cut, std::vector<RelayedChannel> channels);

  // Bytes of a message. Both ends find the same.
  [[nodiscard]] std::size_t size_of(const Channel& channel, std::uint64_t slice) const;
  // The places of its bytes, in the order of the message; bytes without a gap are one part.
  void find_parts(const Channel& channel, std::uint64_t slice, std::vector<SlotCopy::Part>& parts) const;
  // The slots of this sender may lie in memory of the GPU: parts of a whole slice are long enough for a device.
  [[nodiscard]] bool suits_gpu(const Channel& channel) const;
  // Its slots lie there from now on: the kernel fills them, and waits for the same flags as before.
  static void put_in_gpu(Channel& channel, const GpuSlots& slots, DeviceEnds& ends);
  // Copies between the slots of all blocks and a message.
  void gather(const Channel& channel, std::uint64_t slice, const std::byte* staging, std::byte* message) const;
  void scatter(const Channel& channel, std::uint64_t slice, const std::byte* message, std::byte* staging) const;

  Rank rank = 0;
  std::uint32_t blocks = 1;
  std::uint64_t slices = 1;
  std::uint64_t slice_elements = 1;
  std::uint64_t part_elements = 1;
  std::size_t element_size = 1;
  std::uint8_t codec = 0;
  std::vector<Channel> channels;

 private:
  [[nodiscard]] std::size_t size_of_part(const Channel& channel, std::size_t piece, std::uint64_t slice,
                                         std::uint32_t block) const;
  template <class Visit>
  void visit_parts(const Channel& channel, std::uint64_t slice, const Visit& visit) const;
};

// The delays of stages (DeviceCut) with which senders of relayed messages go on for `rounds` slices while these travel: the
// stages that follow such a sender lie so many rounds later. Empty: stages follow each other, because the delay would be no more
// than that, or because some message is not received in a later stage than it is sent. `programs`: of all ranks.
[[nodiscard]] std::vector<std::uint32_t> delays_of(std::span<const BoundProgram> programs, const RelayedPairs& relayed,
                                                   std::uint32_t rounds);

}  // namespace seto
