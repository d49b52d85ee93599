#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/engine/device/device_channels.h"
#include "src/engine/kernels/transfer_program.h"
#include "src/plan/local_program.h"

namespace seto {

// The area of every workspace by which pairs of ranks send messages. Its layout follows from the number of ranks alone, so a rank
// needs to know nothing of the messages of the others. Other calls never write there.
class TransferArea final {
 public:
  static constexpr std::size_t kSize = std::size_t{512} << 10;  // bytes
  static constexpr std::uint64_t kAlignment = 128;

  // `begin`: in every workspace, a multiple of the alignment. Fails if the area is too small for so many ranks.
  static Result<TransferArea> of(std::size_t ranks, std::uint64_t begin);

  [[nodiscard]] std::uint32_t channels() const { return channels_; }  // of a pair of ranks, in each direction
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  [[nodiscard]] std::uint32_t slot_content() const { return slot_content_; }  // bytes of a slice

  // The channels that a rank has, in both directions; report() numbers them.
  [[nodiscard]] std::size_t lanes() const { return 2 * ranks_ * channels_; }
  [[nodiscard]] std::uint32_t report(LocalTransfer pair, std::uint32_t channel) const;
  // The pair of which the channel with that number is one.
  [[nodiscard]] LocalTransfer pair_of(std::uint32_t report) const;

  // The ends of a channel, without messages. `workspaces`: of all ranks, as this rank's GPU sees them.
  [[nodiscard]] kernels::TransferLane lane(std::size_t rank, LocalTransfer pair, std::uint32_t channel,
                                           std::span<const kernels::Address> workspaces) const;

  // A channel to or from a rank that the GPU does not reach: slots and flags of both ends lie in memory of this rank's host,
  // where a relay takes the place of the other rank. Places are bytes from the begin of that memory.
  static constexpr std::size_t kStagedSize = 2 * kSize;
  struct StagedChannel {
    std::uint64_t slots = 0, posted = 0, read = 0;
  };
  [[nodiscard]] StagedChannel staged(std::size_t rank, LocalTransfer pair, std::uint32_t channel) const;
  [[nodiscard]] kernels::TransferLane staged_lane(std::size_t rank, LocalTransfer pair, std::uint32_t channel,
                                                  kernels::Address workspace, kernels::Address staging) const;

 private:
  TransferArea(std::size_t ranks, std::uint64_t begin) : ranks_(ranks), begin_(begin) {}
  [[nodiscard]] std::uint64_t flags_size() const;
  [[nodiscard]] std::uint64_t slots_size() const;  // of a channel
  // Where a rank keeps what it shares with a peer.
  enum class Flag : std::uint8_t { posted, read, state_out, state_in };
  [[nodiscard]] std::uint64_t place(Flag flag, std::size_t rank, std::size_t peer, std::uint32_t channel) const;
  [[nodiscard]] std::uint64_t slots(std::size_t rank, std::size_t peer, std::uint32_t channel) const;
  [[nodiscard]] std::uint64_t index(std::size_t rank, std::size_t peer, std::uint32_t channel) const;

  std::size_t ranks_;
  std::uint64_t begin_;
  std::uint32_t channels_ = 8;
  std::uint32_t depth_ = 4;
  std::uint32_t slot_content_ = 16 << 10;
};

// One message of a rank, to or from another one.
struct DeviceTransfer {
  LocalTransfer pair;
  kernels::TransferMessage message;
};

struct DeviceTransfers {
  std::span<const DeviceTransfer> messages;  // those of a pair in their order
  std::span<const kernels::TransferCopy> copies;
  std::uint32_t most_blocks = 1;
  const RelayedPairs* relayed = nullptr;  // null: none
  kernels::Address staging = 0;           // of their channels
};

// The program of what one rank sends and receives in one launch. No messages and no copies make a program of one block, which
// ends at once.
std::vector<std::byte> transfer_program(const TransferArea& area, std::size_t rank, std::span<const kernels::Address> workspaces,
                                        const DeviceTransfers& transfers);

}  // namespace seto
