#include "transports/slots/pair_streams.h"

#include <algorithm>
#include <bit>

namespace seto::slots {
namespace {

constexpr std::uint32_t kSmallestSlot = 4 << 10;
// A slot and the destination of its copy still fit in a second-level cache; measured with sendrecv_perf.
constexpr std::uint32_t kLargestSlot = 64 << 10;
constexpr std::uint32_t kSlotAlignment = 64;

}  // namespace

// ---- sender ----

SlotPairSender::SlotPairSender(SlotPeerGroup& peer_group, std::uint32_t receiver)
    : peer_group_(peer_group),
      receiver_(receiver),
      lines_(&peer_group.boards_.line<PairLine>(peer_group.boards_.own(), peer_group.boards_.layout().messages(receiver))),
      taken_line_(&peer_group.boards_.line<const PairTakenLine>(
          receiver, peer_group.boards_.layout().received(peer_group.boards_.own()))) {}

// Slots that the receiver may still read stay leased for as long as the pool lives: nothing could learn later that it has read
// them.
SlotPairSender::~SlotPairSender() {
  const bool read = taken(*std::max_element(last_use_.begin(), last_use_.end())) || peer_group_.status_.gone(receiver_);
  if (ring_size_ > 0 && read) peer_group_.boards_.setup().pool->give_back(ring_, ring_size_);
}

bool SlotPairSender::taken(Mark mark) {
  if (taken_ < mark) taken_ = taken_line_->taken.load(std::memory_order_acquire);
  return taken_ >= mark;
}

PairPiece SlotPairSender::acquire(const MessageHeader& header) {
  if (!opened_) {
    const PairPiece::State state = open(header);
    if (state == PairPiece::State::refused) next();
    if (state != PairPiece::State::ready) return {state, nullptr, 0};
  }
  if (inline_) {
    piece_ = size_;
    return {PairPiece::State::ready, line().message, piece_};
  }
  const std::uint64_t slot = position_ % kDepth;
  if (!taken(last_use_[slot])) return {};
  if (taken_ >= mark_of(message_, kWhole)) {  // the receiver refused the message before all of it was sent
    next();
    return {PairPiece::State::refused, nullptr, 0};
  }
  piece_ = static_cast<std::size_t>(std::min<std::uint64_t>(stride_, size_ - done_));
  return {PairPiece::State::ready, peer_group_.boards_.own_segment() + ring_ + slot * stride_, piece_};
}

PairPiece::State SlotPairSender::open(const MessageHeader& header) {
  if (message_ > kPairLines && !taken(mark_of(message_ - kPairLines, kWhole))) return PairPiece::State::waiting;
  if (taken_ >= mark_of(message_, kWhole)) return PairPiece::State::refused;
  size_ = header.verdict == 0 ? header.size : 0;
  inline_ = size_ <= kHeadBytes;
  if (!inline_ && !choose_ring(size_)) return PairPiece::State::waiting;
  PairLine& line = this->line();
  line.size = header.size;
  line.label = header.label;
  line.verdict = header.verdict;
  line.depth = inline_ ? 0 : kDepth;
  if (!inline_) {
    line.slots.offset = ring_;
    line.slots.stride = stride_;
    line.slots.first = static_cast<std::uint32_t>(position_ % kDepth);
    line.slots.check = check_of_pair(ring_, stride_, kDepth, line.slots.first);
  }
  opened_ = true;
  done_ = pieces_ = 0;
  return PairPiece::State::ready;
}

// A larger ring replaces a smaller one once the receiver has read all of the smaller one; until then the smaller one is used.
bool SlotPairSender::choose_ring(std::uint64_t size) {
  const auto wanted = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::bit_ceil(size), kSmallestSlot, kLargestSlot));
  if (wanted <= stride_) return true;
  if (stride_ > 0 && !taken(mark_of(message_ - 1, kWhole))) return true;
  const int node = peer_group_.boards_.member(receiver_).node;
  Result<std::size_t> larger = peer_group_.boards_.setup().pool->lease(std::size_t{wanted} * kDepth, node);
  if (!larger.ok()) {
    if (stride_ > 0) return true;
    peer_group_.fail(larger.status());
    return false;
  }
  if (ring_size_ > 0) peer_group_.boards_.setup().pool->give_back(ring_, ring_size_);
  ring_ = larger.value();
  ring_size_ = std::size_t{wanted} * kDepth;
  stride_ = wanted;
  return true;
}

bool SlotPairSender::commit() {
  done_ += piece_;
  ++pieces_;
  const bool last = done_ == size_;
  if (!inline_) last_use_[position_++ % kDepth] = mark_of(message_, pieces_);
  line().mark.store(mark_of(message_, last ? kWhole : pieces_), std::memory_order_release);
  peer_group_.boards_.wake(receiver_);
  if (last) next();
  return last;
}

void SlotPairSender::next() {
  ++message_;
  opened_ = false;
}

MessageHeader SlotPairSender::other_end() const {
  return {taken_line_->size.load(std::memory_order_relaxed), taken_line_->label.load(std::memory_order_relaxed),
          taken_line_->verdict.load(std::memory_order_relaxed)};
}

// ---- receiver ----

SlotPairReceiver::SlotPairReceiver(SlotPeerGroup& peer_group, std::uint32_t sender)
    : peer_group_(peer_group),
      sender_(sender),
      lines_(&peer_group.boards_.line<const PairLine>(sender, peer_group.boards_.layout().messages(peer_group.boards_.own()))),
      taken_line_(
          &peer_group.boards_.line<PairTakenLine>(peer_group.boards_.own(), peer_group.boards_.layout().received(sender))) {}

bool SlotPairReceiver::has_pending() const {
  return !opened_ && operation_of(lines_[message_ % kPairLines].mark.load(std::memory_order_acquire)) == message_;
}

MessageHeader SlotPairReceiver::pending_header() const {
  const PairLine& line = lines_[message_ % kPairLines];
  return {line.size, line.label, line.verdict};
}

PairPiece SlotPairReceiver::front(const MessageHeader& header) {
  if (header.verdict != 0 && !opened_) {
    refuse(header);
    return {PairPiece::State::refused, nullptr, 0};
  }
  if (committed_ <= mark_of(message_, pieces_)) {
    committed_ = lines_[message_ % kPairLines].mark.load(std::memory_order_acquire);
    if (committed_ <= mark_of(message_, pieces_)) return {};
    if (operation_of(committed_) != message_) {
      peer_group_.fail(failure(Code::remote_error, "%s %u: the header of its message is garbage (message %llu; expected %llu)",
                               peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_),
                               static_cast<unsigned long long>(operation_of(committed_)),
                               static_cast<unsigned long long>(message_)));
      committed_ = 0;
      return {};
    }
  }
  if (!opened_) {
    const PairPiece::State state = open(header);
    if (state != PairPiece::State::ready) return {state, nullptr, 0};
  }
  if (depth_ == 0) {
    piece_ = static_cast<std::size_t>(theirs_.size);
    return {PairPiece::State::ready, const_cast<std::byte*>(lines_[message_ % kPairLines].message), piece_};
  }
  piece_ = static_cast<std::size_t>(std::min<std::uint64_t>(stride_, theirs_.size - done_));
  return {PairPiece::State::ready, peer_group_.boards_.member(sender_).segment + offset_ + (first_ + pieces_) % depth_ * stride_,
          piece_};
}

PairPiece::State SlotPairReceiver::open(const MessageHeader& header) {
  theirs_ = pending_header();
  depth_ = lines_[message_ % kPairLines].depth;
  if (theirs_ != header) {
    refuse(header);
    return PairPiece::State::refused;
  }
  if (!sound()) {
    peer_group_.fail(
        failure(Code::remote_error, "%s %u: the header of its message is garbage (%llu bytes, offset %llu, stride %u, depth %u)",
                peer_group_.boards_.called(), peer_group_.boards_.number_of(sender_),
                static_cast<unsigned long long>(theirs_.size), static_cast<unsigned long long>(offset_), stride_, depth_));
    return PairPiece::State::waiting;
  }
  opened_ = true;
  done_ = pieces_ = 0;
  return PairPiece::State::ready;
}

// Every field of a header is copied once and checked before it is used.
bool SlotPairReceiver::sound() {
  if (depth_ == 0) return theirs_.size <= kHeadBytes;
  const PairLine& line = lines_[message_ % kPairLines];
  offset_ = line.slots.offset;
  stride_ = line.slots.stride;
  first_ = line.slots.first;
  const std::uint64_t size = std::uint64_t{stride_} * depth_;
  const std::size_t segment = peer_group_.boards_.member(sender_).segment_size;
  if (line.slots.check != check_of_pair(offset_, stride_, depth_, first_)) return false;
  return theirs_.size > 0 && stride_ > 0 && stride_ % kSlotAlignment == 0 && offset_ % kSlotAlignment == 0 && first_ < depth_ &&
         size <= segment && offset_ <= segment - size;
}

bool SlotPairReceiver::release() {
  done_ += piece_;
  ++pieces_;
  const bool last = done_ == theirs_.size;
  taken_line_->taken.store(mark_of(message_, last ? kWhole : pieces_), std::memory_order_release);
  peer_group_.boards_.wake(sender_);
  if (last) next();
  return last;
}

// Marks the message as taken as a whole. The sender notices while it still has pieces to send, or has sent all of them already.
void SlotPairReceiver::refuse(const MessageHeader& header) {
  taken_line_->size.store(header.size, std::memory_order_relaxed);
  taken_line_->label.store(header.label, std::memory_order_relaxed);
  taken_line_->verdict.store(header.verdict, std::memory_order_relaxed);
  taken_line_->taken.store(mark_of(message_, kWhole), std::memory_order_release);
  peer_group_.boards_.wake(sender_);
  next();
}

void SlotPairReceiver::next() {
  ++message_;
  opened_ = false;
  done_ = pieces_ = 0;
}

}  // namespace seto::slots
