#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/engine/device_lowering.h"

namespace seto {

// The memory by which the GPUs of a call reach each other. Every rank has one workspace, which its peers map. It begins with what
// stays from one operation to the next: the rank's own numbers, and a flag of each rank. The flags of the call's channels follow,
// in an area of fixed size, and then their slots. Other calls lay out both in their own way, because the kernels wait until the
// operation before is done; but a flag lies only where flags were, because data that looked like a later mark would be taken for
// one. A workspace is zeros before its first operation.
class DeviceChannels final {
 public:
  static constexpr std::size_t kFlagArea = std::size_t{256} << 10;  // bytes, with the numbers at the begin

  // Joins the ends of all ranks' streams by their addresses. Fails if two ends disagree, if one is missing, or if the flags of so
  // many blocks have no room.
  static Result<DeviceChannels> join(std::span<const BoundProgram> programs, const DeviceCut& cut);

  // The place in every workspace of the number of the last operation that a rank has done; those of all ranks lie kFlagStride
  // apart.
  [[nodiscard]] static std::uint64_t done_flag(std::size_t rank);

  [[nodiscard]] std::size_t workspace_size(std::size_t rank) const { return workspaces_[rank]; }  // bytes
  // The ends of a rank, if `workspaces` are the addresses of all ranks' workspaces as this rank's GPU sees them.
  [[nodiscard]] DeviceEnds ends_of(std::size_t rank, std::span<const kernels::Address> workspaces) const;

 private:
  class Joiner;

  // A channel to one receiver; places are bytes from the begin of a workspace.
  struct Pair {
    std::size_t sender = 0, receiver = 0;  // ranks
    std::uint64_t slots = 0, posted = 0;   // of the receiver's workspace
    std::uint64_t read = 0;                // of the sender's
    std::uint64_t block_stride = 0;
    std::uint32_t depth = 1;
    std::uint32_t slot_size = 0;
  };

  std::vector<std::size_t> workspaces_;  // sizes, by rank
  std::vector<Pair> pairs_;
  std::vector<std::vector<std::vector<std::size_t>>> places_;  // in pairs_: by rank, stream and receiver
};

}  // namespace seto
