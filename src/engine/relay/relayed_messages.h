#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/engine/device/device_transfers.h"
#include "transports/pair_streams.h"

namespace seto {

// Moves sends and receives between the kernels of this rank and the ranks that its GPU does not reach. A message of a kernel is a
// message of the peer group, in the same order and with the same label: each end alone cuts it into the slots of its channels. No
// call waits.
class RelayedMessages final {
 public:
  // `staging`: where the channels of the area begin, zeros at first. It outlives the object.
  RelayedMessages(Rank rank, std::size_t ranks, const TransferArea& area, std::byte* staging);
  RelayedMessages(const RelayedMessages&) = delete;
  RelayedMessages& operator=(const RelayedMessages&) = delete;

  // ---- any thread
  // Before the first message with that rank; later calls change nothing. Both outlive the object: a pair of ranks has one of
  // each, which count its messages from the first one of the communicator on.
  void open(Rank peer, PairSender& sender, PairReceiver& receiver);
  [[nodiscard]] bool is_open(Rank peer) const { return of(peer).is_open.load(std::memory_order_acquire); }
  // A kernel has sent something to a rank that is still there, and the peer group has not taken it yet.
  [[nodiscard]] bool has_untaken() const { return first_untaken() != kNoRank; }
  // The first rank to which such messages go; kNoRank: there is none.
  static constexpr Rank kNoRank = -1;
  [[nodiscard]] Rank first_untaken() const;

  // ---- the holder of the progress token
  // Moves messages as far as possible, at most so many pieces with each peer in each direction. Returns whether something moved.
  // Fails if a peer refuses a message, which no relay does: the kernels compare both ends.
  Result<bool> advance(std::uint32_t most);
  // That rank reads no more.
  void leave(Rank peer) { of(peer).is_gone.store(true, std::memory_order_relaxed); }
  // Something of that rank is here, and the kernel has not read it yet.
  [[nodiscard]] bool is_bringing(Rank peer) const;

 private:
  // The message of a peer in one direction that is under way.
  struct Message {
    MessageHeader header;
    std::uint64_t position = 0;  // bytes that were moved
    std::size_t in_piece = 0;    // of them, in the piece of the stream that is not complete
    bool is_open = false;
  };
  struct Peer {
    Rank rank = 0;
    PairSender* sender = nullptr;
    PairReceiver* receiver = nullptr;
    Message out, in;
    std::vector<std::uint64_t> taken, brought;  // slices, by channel
    std::atomic<bool> is_open{false};
    std::atomic<bool> is_gone{false};
  };
  // A part of a slice that is moved at once.
  struct Part {
    std::uint32_t channel = 0;
    std::uint64_t within = 0;  // bytes from the begin of the slice
    std::size_t size = 0;
    bool ends_slice = false;
  };
  enum class Turn : std::uint8_t { waits, piece_done, refused };

  [[nodiscard]] Peer& of(Rank peer) { return peers_[static_cast<std::size_t>(peer)]; }
  [[nodiscard]] const Peer& of(Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  Turn send(Peer& peer);
  Turn receive(Peer& peer);
  bool fill(Peer& peer, const PairPiece& piece);
  bool empty(Peer& peer, const PairPiece& piece);
  [[nodiscard]] Part next_part(const Message& message, std::size_t room) const;
  void count(Message& message, const Part& part);
  [[nodiscard]] TransferArea::StagedChannel places(const Peer& peer, LocalTransfer::Direction direction,
                                                   std::uint32_t channel) const;
  [[nodiscard]] std::byte* slot(const TransferArea::StagedChannel& at, std::uint64_t slice) const;

  const std::size_t rank_;
  const TransferArea area_;
  std::byte* const staging_;
  std::vector<Peer> peers_;  // by rank
  std::uint64_t moves_ = 0;  // parts
};

}  // namespace seto
