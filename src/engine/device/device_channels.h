#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/engine/device/device_lowering.h"

namespace seto {

// Pairs of ranks that share no memory of their GPUs, because they are on different hosts or no GPU maps the other: threads of the
// host carry their messages. All ranks know the same pairs.
class RelayedPairs final {
 public:
  RelayedPairs() = default;  // none
  explicit RelayedPairs(std::size_t ranks) : ranks_(ranks), relayed_(ranks * ranks, 0) {}

  void add(std::size_t one, std::size_t other) { relayed_[one * ranks_ + other] = relayed_[other * ranks_ + one] = 1; }
  [[nodiscard]] bool has(std::size_t one, std::size_t other) const {
    return !relayed_.empty() && relayed_[one * ranks_ + other] != 0;
  }
  [[nodiscard]] bool any() const { return std::find(relayed_.begin(), relayed_.end(), 1) != relayed_.end(); }

 private:
  std::size_t ranks_ = 0;
  std::vector<std::uint8_t> relayed_;
};

// An end of a channel whose other end is relayed: its slots and flags lie in this rank's own staging memory, which the kernel and
// the relay of this rank use as two ranks use a workspace. Places are bytes from the begin of that memory.
struct RelayedChannel {
  std::size_t peer = 0;
  bool sends = false;
  std::uint16_t port = 0;  // relayed channels of a sender and a receiver are numbered
  std::size_t stream = 0;  // of the rank's program
  std::size_t end = 0;     // of the stream: DeviceEnds
  std::uint64_t slots = 0, posted = 0, read = 0;
  std::uint64_t block_stride = 0;
  std::uint32_t depth = 1;      // slots of a block here
  std::uint32_t slot_size = 0;  // of a block
  std::uint32_t ahead = 1;      // messages that the sender may be ahead of the receiver, in slots and between them
};

// The memory by which the GPUs of a call reach each other. Every rank has one workspace, which its peers map. It begins with what
// stays from one operation to the next: the rank's own numbers, and a flag of each rank. The flags of the call's channels follow,
// in an area of fixed size, then the area of marked messages, and then the slots of the call's channels. Other calls lay out
// flags and slots in their own way, because the kernels wait until the operation before is done; but a flag lies only where flags
// were, and a marked word where marked words were, because data that looked like a later mark would be taken for one. A workspace
// is zeros before its first operation.
class DeviceChannels final {
 public:
  static constexpr std::size_t kFlagArea = std::size_t{256} << 10;  // bytes, with the numbers at the begin

  // Bytes of a message, without its marks, that fit into a slot of the area for marked messages.
  [[nodiscard]] static std::uint64_t most_marked_bytes(std::size_t ranks);

  // Joins the ends of all ranks' streams by their addresses. Fails if two ends disagree, if one is missing, or if the flags of so
  // many blocks have no room.
  static Result<DeviceChannels> join(std::span<const BoundProgram> programs, const DeviceCut& cut,
                                     const RelayedPairs& relayed = {});

  // The place in every workspace of the number of the last operation that a rank has done; those of all ranks lie kFlagStride
  // apart.
  [[nodiscard]] static std::uint64_t done_flag(std::size_t rank);

  // The places in staging memory of the number of the last operation that the kernels of this rank have done, and that its relay
  // has done. Flags follow them in an area of fixed size, and then slots, as in a workspace.
  static constexpr std::uint64_t kKernelDone = 0, kRelayDone = kernels::kFlagStride;

  [[nodiscard]] std::size_t workspace_size(std::size_t rank) const { return workspaces_[rank]; }  // bytes
  [[nodiscard]] std::size_t staging_size(std::size_t rank) const { return staging_[rank]; }
  // The ends of a rank, if `workspaces` are the addresses of all ranks' workspaces, and `staging` that of its staging memory, as
  // this rank's GPU sees them. If any pair of ranks is relayed, the relay of this rank is the last of its peers.
  [[nodiscard]] DeviceEnds ends_of(std::size_t rank, std::span<const kernels::Address> workspaces,
                                   kernels::Address staging = 0) const;
  [[nodiscard]] std::vector<RelayedChannel> relayed_of(std::size_t rank) const;

 private:
  class Joiner;

  struct Staged {  // of a relayed pair, at one of its ranks
    std::uint64_t slots = 0, posted = 0, read = 0;
  };
  // A channel to one receiver; places are bytes from the begin of a workspace.
  struct Pair {
    std::size_t sender = 0, receiver = 0;  // ranks
    std::uint64_t slots = 0, posted = 0;   // of the receiver's workspace
    std::uint64_t read = 0;                // of the sender's
    std::uint64_t block_stride = 0;
    std::uint32_t depth = 1;
    std::uint32_t slot_size = 0;
    bool lent = false;  // it has flags only
    std::uint32_t ahead = 1;
    std::uint16_t port = 0;
    bool relayed = false;
    bool marked = false;
    Staged at_sender = {}, at_receiver = {};
  };

  std::vector<std::size_t> workspaces_;  // sizes, by rank
  std::vector<std::size_t> staging_;     // sizes, by rank
  RelayedPairs relayed_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<std::vector<std::size_t>>> places_;  // in pairs_: by rank, stream and receiver
};

}  // namespace seto
