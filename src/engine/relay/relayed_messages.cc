#include "src/engine/relay/relayed_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/engine/relay/relay_channels.h"

namespace seto {

namespace {

using kernels::kSliceHeaderSize;
using kernels::SliceHeader;
constexpr auto kSends = LocalTransfer::Direction::send;
constexpr auto kReceives = LocalTransfer::Direction::receive;

}  // namespace

RelayedMessages::RelayedMessages(Rank rank, std::size_t ranks, const TransferArea& area, std::byte* staging)
    : rank_(static_cast<std::size_t>(rank)), area_(area), staging_(staging), peers_(ranks) {
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    peers_[peer].rank = static_cast<Rank>(peer);
    peers_[peer].taken.resize(area.channels());
    peers_[peer].brought.resize(area.channels());
  }
}

void RelayedMessages::open(Rank peer, PairSender& sender, PairReceiver& receiver) {
  Peer& opened = of(peer);
  if (opened.is_open.load(std::memory_order_relaxed)) return;
  opened.sender = &sender;
  opened.receiver = &receiver;
  opened.is_open.store(true, std::memory_order_release);
}

Rank RelayedMessages::first_untaken() const {
  for (const Peer& peer : peers_) {
    if (!is_open(peer.rank) || peer.is_gone.load(std::memory_order_relaxed)) continue;
    for (std::uint32_t channel = 0; channel < area_.channels(); ++channel) {
      const TransferArea::StagedChannel at = places(peer, kSends, channel);
      if (load_flag(staging_, at.posted) != load_flag(staging_, at.read)) return peer.rank;
    }
  }
  return kNoRank;
}

bool RelayedMessages::is_bringing(Rank peer) const {
  if (!is_open(peer)) return false;
  const Peer& from = of(peer);
  for (std::uint32_t channel = 0; channel < area_.channels(); ++channel)
    if (load_flag(staging_, places(from, kReceives, channel).read) != from.brought[channel]) return true;
  if (!from.in.is_open) return from.receiver->has_pending();
  return from.receiver->front(from.in.header).state == PairPiece::State::ready;
}

Result<bool> RelayedMessages::advance(std::uint32_t most) {
  const std::uint64_t before = moves_;
  for (Peer& peer : peers_) {
    if (!is_open(peer.rank)) continue;
    Turn sent = Turn::piece_done, received = Turn::piece_done;
    if (!peer.is_gone.load(std::memory_order_relaxed))
      for (std::uint32_t moved = 0; moved < most && sent == Turn::piece_done; ++moved) sent = send(peer);
    for (std::uint32_t moved = 0; moved < most && received == Turn::piece_done; ++moved) received = receive(peer);
    if (sent == Turn::refused || received == Turn::refused)
      return failure(Code::remote_error, "rank %d refused a message between GPUs that do not reach each other", peer.rank);
  }
  return moves_ != before;
}

RelayedMessages::Turn RelayedMessages::send(Peer& peer) {
  Message& message = peer.out;
  if (!message.is_open) {
    const TransferArea::StagedChannel at = places(peer, kSends, 0);
    if (load_flag(staging_, at.posted) == peer.taken[0]) return Turn::waits;
    SliceHeader begin;
    std::memcpy(&begin, slot(at, peer.taken[0]), sizeof begin);
    message = {{begin.size, begin.label, 0}, 0, 0, true};
  }
  const PairPiece piece = peer.sender->acquire(message.header);
  if (piece.state == PairPiece::State::refused) return Turn::refused;
  if (piece.state != PairPiece::State::ready || !fill(peer, piece)) return Turn::waits;
  message.in_piece = 0;
  if (peer.sender->commit()) message.is_open = false;
  return Turn::piece_done;
}

// False: the kernel has not sent the next slice.
bool RelayedMessages::fill(Peer& peer, const PairPiece& piece) {
  Message& message = peer.out;
  do {
    const Part part = next_part(message, piece.size - message.in_piece);
    const TransferArea::StagedChannel at = places(peer, kSends, part.channel);
    std::uint64_t& taken = peer.taken[part.channel];
    if (load_flag(staging_, at.posted) == taken) return false;
    if (part.size > 0) std::memcpy(piece.data + message.in_piece, slot(at, taken) + kSliceHeaderSize + part.within, part.size);
    count(message, part);
    if (part.ends_slice) store_flag(staging_, at.read, ++taken);
  } while (message.in_piece < piece.size);
  return true;
}

RelayedMessages::Turn RelayedMessages::receive(Peer& peer) {
  Message& message = peer.in;
  if (!message.is_open) {
    if (!peer.receiver->has_pending()) return Turn::waits;
    message = {peer.receiver->pending_header(), 0, 0, true};
  }
  const PairPiece piece = peer.receiver->front(message.header);
  if (piece.state == PairPiece::State::refused) return Turn::refused;
  if (piece.state != PairPiece::State::ready || !empty(peer, piece)) return Turn::waits;
  message.in_piece = 0;
  if (peer.receiver->release()) message.is_open = false;
  return Turn::piece_done;
}

// False: the kernel has not read what was in the slot that comes next.
bool RelayedMessages::empty(Peer& peer, const PairPiece& piece) {
  Message& message = peer.in;
  do {
    const Part part = next_part(message, piece.size - message.in_piece);
    const TransferArea::StagedChannel at = places(peer, kReceives, part.channel);
    std::uint64_t& brought = peer.brought[part.channel];
    std::byte* const into = slot(at, brought);
    if (part.within == 0) {
      if (brought - load_flag(staging_, at.read) >= area_.depth()) return false;
      const SliceHeader begin{message.header.size, message.header.label};
      std::memcpy(into, &begin, sizeof begin);
    }
    if (part.size > 0) std::memcpy(into + kSliceHeaderSize + part.within, piece.data + message.in_piece, part.size);
    count(message, part);
    if (part.ends_slice) store_flag(staging_, at.posted, ++brought);
  } while (message.in_piece < piece.size);
  return true;
}

// TransferBlock cuts messages in the same way. An empty message has one empty slice.
RelayedMessages::Part RelayedMessages::next_part(const Message& message, std::size_t room) const {
  const std::uint64_t content = area_.slot_content();
  Part part;
  part.channel = static_cast<std::uint32_t>(message.position / content % area_.channels());
  part.within = message.position % content;
  const std::uint64_t left = std::min(content - part.within, message.header.size - message.position);
  part.size = static_cast<std::size_t>(std::min<std::uint64_t>(left, room));
  part.ends_slice = part.size == left;
  return part;
}

void RelayedMessages::count(Message& message, const Part& part) {
  message.position += part.size;
  message.in_piece += part.size;
  ++moves_;
}

TransferArea::StagedChannel RelayedMessages::places(const Peer& peer, LocalTransfer::Direction direction,
                                                    std::uint32_t channel) const {
  return area_.staged(rank_, {direction, peer.rank}, channel);
}

std::byte* RelayedMessages::slot(const TransferArea::StagedChannel& at, std::uint64_t slice) const {
  return staging_ + at.slots + slice % area_.depth() * (std::uint64_t{area_.slot_content()} + kSliceHeaderSize);
}

}  // namespace seto
