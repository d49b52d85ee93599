#include "transports/tcp/streams/pairs.h"

#include <algorithm>

namespace seto::tcp {

// ---- sender ----

TcpPairSender::TcpPairSender(TcpPeerGroup& peer_group, std::uint32_t receiver)
    : peer_group_(peer_group), receiver_(receiver), used_slots_(peer_group.link(receiver)->far() ? kFarSlots : kSlots) {}

TcpPairSender::Slot* TcpPairSender::next_slot() {
  std::shared_ptr<Slot>& slot = slots_[position_ % used_slots_];
  if (slot != nullptr && slot->unwritten.load(std::memory_order_acquire) > 0) return nullptr;
  if (slot != nullptr && !slot->lender.needed()) return slot.get();
  if (slot != nullptr) kept_.push_back(std::move(slot));
  while (kept_.size() > used_slots_ && !kept_.front()->lender.needed()) kept_.pop_front();
  if (!kept_.empty() && !kept_.front()->lender.needed()) {
    slot = std::move(kept_.front());
    kept_.pop_front();
  } else {
    slot = std::make_shared_for_overwrite<Slot>();
    if (peer_group_.link(receiver_)->rails() > 0) slot->name.emplace(slot->memory.data(), slot->memory.size());
  }
  return slot.get();
}

bool TcpPairSender::refused() {
  auto& all = peer_group_.peers_[receiver_].pair_refused;
  if (all.empty() || all.begin()->first > message_) return false;
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  const std::size_t before = all.size();
  all.erase(all.begin(), all.lower_bound(message_));  // refusals of messages that had already ended here
  const auto found = all.find(message_);
  const bool refused = found != all.end();
  if (refused) {
    theirs_ = found->second;
    all.erase(found);
    next();
  }
  peer_group_.discharge(receiver_, (before - all.size()) * TcpPeerGroup::kRefusalEntry);
  return refused;
}

PairPiece TcpPairSender::acquire(const MessageHeader& header) {
  if (refused()) return {PairPiece::State::refused, nullptr, 0};
  if (!opened_) {
    header_ = header;
    size_ = header.verdict == 0 ? header.size : 0;
    done_ = 0;
    opened_ = true;
  }
  // A long message continues only after its receiver has begun to take it.
  const TcpPeerGroup::Peer& peer = peer_group_.peers_[receiver_];
  const std::uint64_t unasked = peer_group_.link(receiver_)->far() ? peer.pair_window / 2 : kUnasked;
  if (done_ >= unasked && peer.pair_opened < message_) return {};
  piece_ = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, size_ - done_));
  if (sent_ + charge_of(kMessageHeaderSize + piece_) > peer.pair_taken + peer.pair_window) return {};
  Slot* const slot = next_slot();
  if (slot == nullptr) return {};
  return {PairPiece::State::ready, slot->memory.data() + kMessageHeaderSize, piece_};
}

bool TcpPairSender::commit() {
  const std::shared_ptr<Slot>& slot = slots_[position_++ % used_slots_];
  put_header(slot->memory.data(), header_);
  Frame frame = peer_group_.frame_of(FrameKind::pair);
  frame.mark = message_;
  frame.length = static_cast<std::uint32_t>(kMessageHeaderSize + piece_);
  frame.set_position(done_);
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  Link& link = *peer_group_.link(receiver_);
  link.queue({frame, slot->memory.data(), {slot, &slot->lender}, &slot->unwritten});
  peer_group_.push_out(link);
  sent_ += charge_of(frame.length);
  done_ += piece_;
  const bool last = done_ == size_;
  if (last) next();
  return last;
}

void TcpPairSender::next() {
  ++message_;
  opened_ = false;
}

// ---- receiver ----

TcpPairReceiver::TcpPairReceiver(TcpPeerGroup& peer_group, std::uint32_t sender) : peer_group_(peer_group), sender_(sender) {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  peer_group_.widen_pair(sender_);
}

bool TcpPairReceiver::has_pending() const { return !opened_ && pair().header_of(message_) != nullptr; }

PairPiece TcpPairReceiver::front(const MessageHeader& header) {
  if (!opened_) {
    const MessageHeader* const arrived = pair().header_of(message_);
    if (arrived == nullptr && header.verdict == 0) return {};
    if (arrived != nullptr && header.verdict == 0) theirs_ = *arrived;
    if (header.verdict != 0 || theirs_ != header) {
      refuse(header);
      return {PairPiece::State::refused, nullptr, 0};
    }
    opened_ = true;
    done_ = 0;
    if (theirs_.size > kUnasked) tell_opened();
  }
  const InPair::Piece* const piece = pair().piece_at(message_, done_);
  if (piece == nullptr) return {};
  piece_ = piece->length - kMessageHeaderSize;
  if (piece_ <= theirs_.size - done_ && (piece_ > 0 || theirs_.size == 0))
    return {PairPiece::State::ready, piece->data + kMessageHeaderSize, piece_};
  peer_group_.fail(failure(Code::remote_error, "%s %u: a piece of its message is garbage (%zu bytes; %llu are missing)",
                           peer_group_.setup_.called, sender_, piece_, static_cast<unsigned long long>(theirs_.size - done_)));
  return {};
}

bool TcpPairReceiver::release() {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  pair().drop_piece(message_, done_);
  done_ += piece_;
  const bool last = done_ == theirs_.size;
  if (last) next();
  peer_group_.give_pair_credit(sender_);
  peer_group_.push_out(*peer_group_.link(sender_));
  return last;
}

void TcpPairReceiver::tell_opened() {
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  Frame frame = peer_group_.frame_of(FrameKind::pair_taken);
  frame.mark = peer_group_.peers_[sender_].pair_told;
  frame.set_position(message_);
  peer_group_.link(sender_)->queue_urgent(frame);
  peer_group_.push_out(*peer_group_.link(sender_));
}

void TcpPairReceiver::refuse(const MessageHeader& header) {
  struct Reply {
    std::array<std::byte, kMessageHeaderSize> header;
    resume::Lender lender;
  };
  const auto reply = std::make_shared<Reply>();
  put_header(reply->header.data(), header);
  Frame frame = peer_group_.frame_of(FrameKind::pair_refused);
  frame.mark = message_;
  frame.length = kMessageHeaderSize;
  const std::byte* const payload = reply->header.data();
  const std::lock_guard lock(peer_group_.setup_.domain->lock());
  next();
  peer_group_.give_pair_credit(sender_);
  peer_group_.link(sender_)->queue({frame, payload, {reply, &reply->lender}, nullptr});
  peer_group_.push_out(*peer_group_.link(sender_));
}

void TcpPairReceiver::next() {
  pair().end(message_);
  ++message_;
  opened_ = false;
}

}  // namespace seto::tcp
