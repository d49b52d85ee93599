#include "transports/tcp/pairs.h"

#include <algorithm>

namespace seto::tcp {

// ---- sender ----

TcpPairSender::TcpPairSender(TcpCircle& circle, std::uint32_t receiver)
    : circle_(circle), receiver_(receiver), slots_(std::make_shared<Slots>()) {}

bool TcpPairSender::refused() {
  auto& all = circle_.peers_[receiver_].pair_refused;
  all.erase(all.begin(), all.lower_bound(message_));  // of messages that had ended here before the answer came
  const auto found = all.find(message_);
  if (found == all.end()) return false;
  theirs_ = found->second;
  all.erase(found);
  next();
  return true;
}

PairPiece TcpPairSender::acquire(const Letter& letter) {
  if (refused()) return {PairPiece::State::refused, nullptr, 0};
  if (!opened_) {
    letter_ = letter;
    size_ = letter.verdict == 0 ? letter.size : 0;
    done_ = 0;
    opened_ = true;
  }
  // A long message goes on when its receiver has begun to take it: sends that face each other, or a receiver that expects
  // something else, are found out before all of it is on its way.
  if (done_ >= kUnasked && circle_.peers_[receiver_].pair_opened < message_) return {};
  piece_ = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, size_ - done_));
  if (sent_ + piece_ + kLetterSize > circle_.peers_[receiver_].pair_taken + kPairCredit) return {};
  auto& slot = slots_->slots[position_ % kSlots];
  if (slot == nullptr) slot = std::make_unique<Slots::Slot>();
  if (slot->unwritten.load(std::memory_order_acquire) > 0) return {};
  return {PairPiece::State::ready, slot->memory.data() + kLetterSize, piece_};
}

bool TcpPairSender::commit() {
  Slots::Slot& slot = *slots_->slots[position_++ % kSlots];
  put_letter(slot.memory.data(), letter_);
  Frame frame = circle_.frame_of(FrameKind::pair);
  frame.mark = message_;
  frame.length = static_cast<std::uint32_t>(kLetterSize + piece_);
  frame.set_position(done_);
  const std::lock_guard lock(circle_.setup_.domain->lock());
  Link& link = *circle_.link(receiver_);
  link.queue({frame, slot.memory.data(), slots_, &slot.unwritten});
  circle_.push_out(link);
  sent_ += frame.length;
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

bool TcpPairReceiver::knocks() const { return !opened_ && pair().letter_of(message_) != nullptr; }

PairPiece TcpPairReceiver::front(const Letter& letter) {
  if (!opened_) {
    const Letter* const came = pair().letter_of(message_);
    if (came == nullptr && letter.verdict == 0) return {};
    if (came != nullptr && letter.verdict == 0) theirs_ = *came;
    if (letter.verdict != 0 || theirs_ != letter) {
      refuse(letter);
      return {PairPiece::State::refused, nullptr, 0};
    }
    opened_ = true;
    done_ = 0;
    if (theirs_.size > kUnasked) tell_opened();
  }
  const InPair::Piece* const piece = pair().piece_at(message_, done_);
  if (piece == nullptr) return {};
  piece_ = piece->length - kLetterSize;
  if (piece_ <= theirs_.size - done_ && (piece_ > 0 || theirs_.size == 0))
    return {PairPiece::State::ready, piece->data + kLetterSize, piece_};
  circle_.fail(failure(Code::remote_error, "%s %u: a piece of its message is garbage (%zu bytes where %llu are left)",
                       circle_.setup_.called, sender_, piece_, static_cast<unsigned long long>(theirs_.size - done_)));
  return {};
}

bool TcpPairReceiver::release() {
  const std::lock_guard lock(circle_.setup_.domain->lock());
  pair().drop_piece(message_, done_);
  done_ += piece_;
  const bool last = done_ == theirs_.size;
  if (last) next();
  circle_.give_pair_credit(sender_);
  circle_.push_out(*circle_.link(sender_));
  return last;
}

void TcpPairReceiver::tell_opened() {
  const std::lock_guard lock(circle_.setup_.domain->lock());
  Frame frame = circle_.frame_of(FrameKind::pair_taken);
  frame.mark = circle_.peers_[sender_].pair_told;
  frame.set_position(message_);
  circle_.link(sender_)->queue_urgent(frame);
  circle_.push_out(*circle_.link(sender_));
}

void TcpPairReceiver::refuse(const Letter& letter) {
  struct Reply final : Source {
    std::array<std::byte, kLetterSize> letter;
  };
  auto reply = std::make_shared<Reply>();
  put_letter(reply->letter.data(), letter);
  Frame frame = circle_.frame_of(FrameKind::pair_refused);
  frame.mark = message_;
  frame.length = kLetterSize;
  const std::byte* const payload = reply->letter.data();
  const std::lock_guard lock(circle_.setup_.domain->lock());
  next();
  circle_.give_pair_credit(sender_);
  circle_.link(sender_)->queue({frame, payload, std::move(reply), nullptr});
  circle_.push_out(*circle_.link(sender_));
}

void TcpPairReceiver::next() {
  pair().end(message_);
  ++message_;
  opened_ = false;
}

}  // namespace seto::tcp
