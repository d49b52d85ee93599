#include "transports/slots/pair_streams.h"

#include <algorithm>
#include <bit>

namespace seto::slots {
namespace {

constexpr std::uint32_t kSmallestSlot = 4 << 10;
// As large as what still stays in a second-level cache together with what it is copied to; measured with sendrecv_perf.
constexpr std::uint32_t kLargestSlot = 64 << 10;
constexpr std::uint32_t kSlotAlignment = 64;

}  // namespace

// ---- sender ----

SlotPairSender::SlotPairSender(SlotCircle& circle, std::uint32_t receiver)
    : circle_(circle),
      receiver_(receiver),
      lines_(&circle.line<PairLine>(circle.setup_.own, circle.layout_.messages(receiver))),
      taken_line_(&circle.line<const PairTakenLine>(receiver, circle.layout_.received(circle.setup_.own))) {}

// Slots that are still to be read stay leased for as long as the pool lives: nobody is left who could hear of their reader.
SlotPairSender::~SlotPairSender() {
  const bool read = taken(*std::max_element(last_use_.begin(), last_use_.end())) || circle_.gone(receiver_);
  if (ring_size_ > 0 && read) circle_.setup_.pool->give_back(ring_, ring_size_);
}

bool SlotPairSender::taken(Mark mark) {
  if (taken_ < mark) taken_ = taken_line_->taken.load(std::memory_order_acquire);
  return taken_ >= mark;
}

PairPiece SlotPairSender::acquire(const Letter& letter) {
  if (!opened_) {
    const PairPiece::State state = open(letter);
    if (state == PairPiece::State::refused) next();
    if (state != PairPiece::State::ready) return {state, nullptr, 0};
  }
  if (inline_) {
    piece_ = size_;
    return {PairPiece::State::ready, line().message, piece_};
  }
  const std::uint64_t slot = position_ % kDepth;
  if (!taken(last_use_[slot])) return {};
  if (taken_ >= mark_of(message_, kWhole)) {  // over, before all of it was there
    next();
    return {PairPiece::State::refused, nullptr, 0};
  }
  piece_ = static_cast<std::size_t>(std::min<std::uint64_t>(stride_, size_ - done_));
  return {PairPiece::State::ready, circle_.setup_.members[circle_.setup_.own].segment + ring_ + slot * stride_, piece_};
}

PairPiece::State SlotPairSender::open(const Letter& letter) {
  if (message_ > kPairLines && !taken(mark_of(message_ - kPairLines, kWhole))) return PairPiece::State::waiting;
  if (taken_ >= mark_of(message_, kWhole)) return PairPiece::State::refused;
  size_ = letter.verdict == 0 ? letter.size : 0;
  inline_ = size_ <= kHeadBytes;
  if (!inline_ && !choose_ring(size_)) return PairPiece::State::waiting;
  PairLine& line = this->line();
  line.size = letter.size;
  line.label = letter.label;
  line.verdict = letter.verdict;
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

// A larger ring replaces a smaller one when all of that has been read; until then the smaller one serves.
bool SlotPairSender::choose_ring(std::uint64_t size) {
  const auto wanted = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::bit_ceil(size), kSmallestSlot, kLargestSlot));
  if (wanted <= stride_) return true;
  if (stride_ > 0 && !taken(mark_of(message_ - 1, kWhole))) return true;
  Result<std::size_t> larger = circle_.setup_.pool->lease(std::size_t{wanted} * kDepth);
  if (!larger.ok()) {
    if (stride_ > 0) return true;
    circle_.fail(larger.status());
    return false;
  }
  if (ring_size_ > 0) circle_.setup_.pool->give_back(ring_, ring_size_);
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
  circle_.wake(receiver_);
  if (last) next();
  return last;
}

void SlotPairSender::next() {
  ++message_;
  opened_ = false;
}

Letter SlotPairSender::other_end() const {
  return {taken_line_->size.load(std::memory_order_relaxed), taken_line_->label.load(std::memory_order_relaxed),
          taken_line_->verdict.load(std::memory_order_relaxed)};
}

// ---- receiver ----

SlotPairReceiver::SlotPairReceiver(SlotCircle& circle, std::uint32_t sender)
    : circle_(circle),
      sender_(sender),
      lines_(&circle.line<const PairLine>(sender, circle.layout_.messages(circle.setup_.own))),
      taken_line_(&circle.line<PairTakenLine>(circle.setup_.own, circle.layout_.received(sender))) {}

bool SlotPairReceiver::knocks() const {
  return !opened_ && operation_of(lines_[message_ % kPairLines].mark.load(std::memory_order_acquire)) == message_;
}

Letter SlotPairReceiver::at_the_door() const {
  const PairLine& line = lines_[message_ % kPairLines];
  return {line.size, line.label, line.verdict};
}

PairPiece SlotPairReceiver::front(const Letter& letter) {
  if (letter.verdict != 0 && !opened_) {
    refuse(letter);
    return {PairPiece::State::refused, nullptr, 0};
  }
  if (committed_ <= mark_of(message_, pieces_)) {
    committed_ = lines_[message_ % kPairLines].mark.load(std::memory_order_acquire);
    if (committed_ <= mark_of(message_, pieces_)) return {};
    if (operation_of(committed_) != message_) {
      circle_.fail(failure(Code::remote_error, "%s %u: the header of its message is garbage (message %llu where %llu was due)",
                           circle_.setup_.called, circle_.number_of(sender_),
                           static_cast<unsigned long long>(operation_of(committed_)), static_cast<unsigned long long>(message_)));
      committed_ = 0;
      return {};
    }
  }
  if (!opened_) {
    const PairPiece::State state = open(letter);
    if (state != PairPiece::State::ready) return {state, nullptr, 0};
  }
  if (depth_ == 0) {
    piece_ = static_cast<std::size_t>(theirs_.size);
    return {PairPiece::State::ready, const_cast<std::byte*>(lines_[message_ % kPairLines].message), piece_};
  }
  piece_ = static_cast<std::size_t>(std::min<std::uint64_t>(stride_, theirs_.size - done_));
  return {PairPiece::State::ready, circle_.setup_.members[sender_].segment + offset_ + (first_ + pieces_) % depth_ * stride_,
          piece_};
}

PairPiece::State SlotPairReceiver::open(const Letter& letter) {
  theirs_ = at_the_door();
  depth_ = lines_[message_ % kPairLines].depth;
  if (theirs_ != letter) {
    refuse(letter);
    return PairPiece::State::refused;
  }
  if (!sound()) {
    circle_.fail(failure(Code::remote_error,
                         "%s %u: the header of its message is garbage (%llu bytes, offset %llu, stride %u, depth %u)",
                         circle_.setup_.called, circle_.number_of(sender_), static_cast<unsigned long long>(theirs_.size),
                         static_cast<unsigned long long>(offset_), stride_, depth_));
    return PairPiece::State::waiting;
  }
  opened_ = true;
  done_ = pieces_ = 0;
  return PairPiece::State::ready;
}

// Nothing of a header is believed before it was checked; what was checked is what is used.
bool SlotPairReceiver::sound() {
  if (depth_ == 0) return theirs_.size <= kHeadBytes;
  const PairLine& line = lines_[message_ % kPairLines];
  offset_ = line.slots.offset;
  stride_ = line.slots.stride;
  first_ = line.slots.first;
  const std::uint64_t size = std::uint64_t{stride_} * depth_;
  const std::size_t segment = circle_.setup_.members[sender_].segment_size;
  if (line.slots.check != check_of_pair(offset_, stride_, depth_, first_)) return false;
  return theirs_.size > 0 && stride_ > 0 && stride_ % kSlotAlignment == 0 && offset_ % kSlotAlignment == 0 && first_ < depth_ &&
         size <= segment && offset_ <= segment - size;
}

bool SlotPairReceiver::release() {
  done_ += piece_;
  ++pieces_;
  const bool last = done_ == theirs_.size;
  taken_line_->taken.store(mark_of(message_, last ? kWhole : pieces_), std::memory_order_release);
  circle_.wake(sender_);
  if (last) next();
  return last;
}

// The message counts as taken: its sender finds that out before it has sent all of it, or has ended already.
void SlotPairReceiver::refuse(const Letter& letter) {
  taken_line_->size.store(letter.size, std::memory_order_relaxed);
  taken_line_->label.store(letter.label, std::memory_order_relaxed);
  taken_line_->verdict.store(letter.verdict, std::memory_order_relaxed);
  taken_line_->taken.store(mark_of(message_, kWhole), std::memory_order_release);
  circle_.wake(sender_);
  next();
}

void SlotPairReceiver::next() {
  ++message_;
  opened_ = false;
  done_ = pieces_ = 0;
}

}  // namespace seto::slots
